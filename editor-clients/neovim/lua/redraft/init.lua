-- Redraft in Neovim: draws what the language server suggests and reports what became of it.
-- Decides nothing: when to ask the model, what to show and what to withhold is the server's business.
local M = {}

local function events()
  return require("redraft.events")
end

--- Draw suggestions and map keys; `options` as in `redraft.config`. Called once by
--- plugin/redraft.lua with `vim.g.redraft`; call it again to change them.
function M.setup(options)
  require("redraft.config").set(options or {})
  require("redraft.marks").colours()
  require("redraft.events").set()
  require("redraft.keys").set()
  require("redraft.command").set()
end

--- Take what is shown: all, or its first "word" or "line". An edit away from the cursor is jumped to
--- first. False where nothing is shown, so that a mapping can do something else.
function M.accept(unit)
  if require("redraft.ghost").accept(unit) then
    return true
  end
  local taken = require("redraft.edit").accept(unit)
  if taken then
    events().ask_again()
  end
  return taken
end

--- Do what Tab does: as `accept`, but a cursor before the indentation of the ghost text gets that
--- indentation first. False where nothing is shown.
function M.tab()
  return require("redraft.ghost").indent() or M.accept()
end

local function turn_down(how)
  local ghost = require("redraft.ghost").clear(how)
  local edit = require("redraft.edit").clear(how)
  return ghost or edit
end

--- Hide what is shown; it may come back. False where nothing is shown.
function M.dismiss()
  return turn_down("dismiss")
end

--- Reject what is shown, and ask for something else. The server does not offer it again. False where
--- nothing is shown.
function M.reject()
  local rejected = turn_down("reject")
  if rejected then
    events().ask_again()
  end
  return rejected
end

--- Ask for a suggestion now, whatever the moment; where one is only hinted at, show it. Where there is
--- none, say why.
function M.trigger()
  events().ask_now(require("redraft.command").nothing_found)
end

--- The ghost text that is shown, or nil.
function M.visible()
  return require("redraft.ghost").text()
end

--- What is shown: "ghost", "edit" or nil.
function M.showing()
  local ghost, edit = require("redraft.ghost"), require("redraft.edit")
  return ghost.visible() and "ghost" or edit.visible() and "edit" or nil
end

--- idle | thinking | waiting | paused | error | off, and one sentence on why nothing is shown.
function M.status()
  local status = require("redraft.status")
  return status.word(), status.why()
end

--- For 'statusline': %{%v:lua.require'redraft'.statusline()%}
function M.statusline()
  return require("redraft.status").line()
end

return M
