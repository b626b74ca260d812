-- Redraft in Neovim: draws suggestions of the language server and reports their outcomes. The server
-- decides what is shown, and when.
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

--- Accept the suggestion, or its first "word" or "line"; first jump to a distant edit. Return false if
--- there is none, so that a mapping can do something else.
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

--- Do what Tab does: add the missing indentation of the ghost text, or accept. Return false if there is
--- no suggestion.
function M.tab()
  return require("redraft.ghost").indent() or M.accept()
end

local function turn_down(how)
  local ghost = require("redraft.ghost").clear(how)
  local edit = require("redraft.edit").clear(how)
  return ghost or edit
end

--- Hide the suggestion; it may come back. Return false if there is none.
function M.dismiss()
  return turn_down("dismiss")
end

--- Reject the suggestion, and ask for another. The server does not offer it again. Return false if there
--- is none.
function M.reject()
  local rejected = turn_down("reject")
  if rejected then
    events().ask_again()
  end
  return rejected
end

--- Ask for a suggestion now, or show a hidden one. If there is none, say why.
function M.trigger()
  events().ask_now(require("redraft.command").nothing_found)
end

--- Show another suggestion in place of the one that is shown; the first one comes after the last.
function M.another()
  if M.showing() then
    events().ask_for_another()
  end
end

--- Return the visible ghost text, or nil.
function M.visible()
  return require("redraft.ghost").text()
end

--- Return what is visible: "ghost", "edit" or nil.
function M.showing()
  local ghost, edit = require("redraft.ghost"), require("redraft.edit")
  return ghost.visible() and "ghost" or edit.visible() and "edit" or nil
end

--- Return idle, thinking, starting, waiting, paused, error or off, and why nothing is shown.
function M.status()
  local status = require("redraft.status")
  return status.word(), status.why()
end

--- For 'statusline': %{%v:lua.require'redraft'.statusline()%}
function M.statusline()
  return require("redraft.status").line()
end

return M
