-- When something happens in the editor: what is drawn keeps up with it, and the server is asked.
-- Whether a moment is a good one, how long to wait, and what comes of it is the server's to decide.
local client = require("redraft.client")
local edit = require("redraft.edit")
local ghost = require("redraft.ghost")
local marks = require("redraft.marks")

local M = {}

--- The state asked about last: { buffer, tick, row, column, mode }.
local asked = {}

local function now()
  local at = vim.api.nvim_win_get_cursor(0)
  local buffer = vim.api.nvim_get_current_buf()
  return {
    buffer = buffer,
    tick = vim.api.nvim_buf_get_changedtick(buffer),
    row = at[1],
    column = at[2],
    mode = vim.fn.mode():sub(1, 1),
  }
end

--- Ask for the next edit, and with `text` for ghost text as well: the server knows which comes first.
local function ask(state, text, invoked)
  asked = state
  client.ask(edit.METHOD, invoked, function(result, from)
    edit.receive(result, from, invoked)
  end)
  if text then
    client.ask(ghost.METHOD, invoked, function(result, from)
      ghost.receive(result, from, invoked)
    end)
  end
end

--- What is to be asked once the screen is drawn: { text }.
local due = nil

--- Ask when Neovim has nothing else to do: what was typed is drawn first, and keys that came together
--- are one question. By a timer: what is only scheduled runs before the screen goes out, and 10 ms is
--- far below what anyone waits for a suggestion.
local function ask_soon(text)
  if due then
    due.text = due.text or text
    return
  end
  due = { text = text }
  vim.defer_fn(function()
    local what, state = due, now()
    due = nil
    if state.mode == "i" or state.mode == "n" then
      ask(state, what.text and state.mode == "i", false)
    end
  end, 10)
end

--- Ask for what there may be here, whatever the moment.
function M.ask_now()
  local state = now()
  if not client.get(state.buffer) then
    return require("redraft.server").explain()
  end
  ask(state, state.mode == "i", true)
end

--- Ask after an acceptance, at once.
function M.ask_again()
  local state = now()
  ask(state, state.mode == "i", false)
end

local function changed()
  ghost.follow()
  edit.follow()
  ask_soon(true)
end

local function moved()
  local state = now()
  if state.buffer == asked.buffer and state.tick ~= asked.tick and state.mode == "i" then
    return -- typing: the change itself is told of next
  end
  if not ghost.is_here() then
    ghost.clear("ignore")
  end
  edit.hint()
  if not vim.deep_equal(state, asked) then
    ask_soon(false)
  end
end

local function left_insert_mode()
  ghost.clear("ignore")
  client.cancel(ghost.METHOD)
end

--- Take everything off the screen.
function M.clear(how)
  client.cancel(ghost.METHOD)
  client.cancel(edit.METHOD)
  ghost.clear(how)
  edit.clear(how)
end

function M.set()
  local group = vim.api.nvim_create_augroup("redraft", {})
  local function on(events, action, pattern)
    vim.api.nvim_create_autocmd(events, { group = group, callback = action, pattern = pattern })
  end
  on({ "TextChanged", "TextChangedI", "TextChangedP" }, changed)
  on({ "CursorMoved", "CursorMovedI" }, moved)
  on("InsertEnter", function()
    local before = asked
    asked = now() -- going over to typing is no change
    if before.buffer == asked.buffer and before.tick ~= asked.tick then
      ask_soon(true) -- but what led there was: a line opened, a word taken out
    end
  end)
  on("InsertLeave", function()
    left_insert_mode()
    ask_soon(false)
  end)
  on("BufLeave", function()
    ghost.clear("ignore")
    marks.hint(nil)
  end)
  on("BufEnter", function(event)
    client.focus(event.buf)
    edit.hint()
    moved()
  end)
  on("FocusLost", function()
    client.focus(nil)
  end)
  on("FocusGained", function(event)
    client.focus(event.buf)
  end)
  on({ "WinScrolled", "WinResized" }, edit.hint)
  on("BufUnload", function(event)
    edit.forget(event.buf)
  end)
  on("LspAttach", function(event)
    local attached = vim.lsp.get_client_by_id(event.data.client_id)
    if attached and attached.name == client.NAME then
      require("redraft.server").attached(event.buf)
      client.focus(event.buf)
    end
  end)
  on("User", function()
    M.clear()
  end, "RedraftEnded")
  on("ColorScheme", marks.colours)
end

return M
