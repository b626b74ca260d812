-- Editor events: they update what is drawn and send requests. The server decides whether to answer, and
-- how long to wait.
local answers = require("redraft.answers")
local buffers = require("redraft.buffers")
local client = require("redraft.client")
local config = require("redraft.config")
local edit = require("redraft.edit")
local ghost = require("redraft.ghost")
local marks = require("redraft.marks")

local M = {}

--- The state of the last request: { buffer, tick, row, column, mode }.
local asked = {}

local now = answers.now

--- Functions to call once no request is running.
local waiting = nil

--- Return whether a request is running.
function M.is_asking()
  return client.is_asking(edit.METHOD) or client.is_asking(ghost.METHOD)
end

--- Time after which a mark shows that an answer takes long, ms.
local LONG_MS = 400
local thinking = vim.uv.new_timer()

local function mark_if_long()
  thinking:stop()
  marks.thinking(nil)
  if config.values.thinking and M.is_asking() then
    thinking:start(LONG_MS, 0, function()
      vim.schedule(function()
        marks.thinking(M.is_asking() and config.values.thinking or nil)
      end)
    end)
  end
end

local function settled()
  require("redraft.status").announce()
  if M.is_asking() then
    return
  end
  mark_if_long()
  local done = waiting
  waiting = nil
  if done then
    done()
  end
end

--- Record why an answer is not drawn: the reason of the server, or one that only this side knows.
local function record(kind, state, result)
  local answer = type(result) == "table" and result or {}
  if (answer.edits or answer.items or answer)[1] then
    return answers.record(kind, state, "it cannot be shown in this buffer as it is now")
  end
  local reason = answer.reason and answer.reason ~= "" and answer.reason or "nothing here"
  answers.record(kind, state, reason, answer.revealable == true)
end

--- Keep ghost text or next edit if both would be drawn in one place, or after a gesture, which shows
--- one. Ghost text is kept unless the edit was shown `before` and the line has code.
local function show_one(invoked, before)
  if not (ghost.visible() and edit.visible() and (invoked or edit.is_beside_cursor())) then
    return
  end
  local line_has_code = vim.api.nvim_get_current_line():find("%S") ~= nil
  local loser = before and line_has_code and ghost or edit
  loser.clear("ignore")
end

--- Ask for one kind of suggestion, "edit" or "text", which `source` draws; `another` than the one shown.
local function ask_kind(kind, source, state, invoked, before, another)
  local change = edit.change()
  client.ask(source.METHOD, invoked, function(result, from)
    source.receive(result, from, invoked)
    local is_same = source == edit and vim.deep_equal(change, edit.change())
    if another and source.visible() and (is_same or source == ghost and not ghost.another()) then
      vim.notify(("Redraft: there is no other %s here"):format(kind))
    end
    if source.visible() then
      answers.record(kind, state, "")
      show_one(invoked, before)
    else
      record(kind, state, result)
    end
    settled()
  end, function(problem)
    answers.record(kind, state, problem)
    settled()
  end, another)
end

--- Ask for the next edit, and with `text` for ghost text as well.
local function ask(state, text, invoked)
  asked = state
  local before = edit.visible()
  ask_kind("edit", edit, state, invoked, before)
  if text then
    ask_kind("text", ghost, state, invoked, before)
  end
  mark_if_long()
end

--- The request to send once the screen is drawn: { text }.
local due = nil

--- Ask when Neovim is idle, so that typed text is drawn first and keys that arrive together cause one
--- request. A timer is needed because scheduled functions run before the screen is drawn.
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

local function cannot_ask(state)
  return not client.get(state.buffer) or vim.b[state.buffer].redraft_disabled
end

--- Ask by a gesture; `say(nothing)` is called if nothing becomes visible.
function M.ask_now(say)
  local state = now()
  if cannot_ask(state) then
    if not require("redraft.server").explain() then
      say()
    end
    return
  end
  waiting = function()
    if not (ghost.visible() or edit.visible()) then
      say()
    end
  end
  ask(state, state.mode == "i", true)
end

--- Call `tell()` once there are answers for this place, and request them if needed.
function M.when_answered(tell)
  local state = now()
  if cannot_ask(state) or ghost.visible() or edit.visible() then
    return tell()
  end
  if not answers.is_here(asked) then
    ask(state, state.mode == "i", false)
  end
  if not M.is_asking() then
    return tell()
  end
  waiting = tell
end

--- Ask at once after an acceptance.
function M.ask_again()
  local state = now()
  ask(state, state.mode == "i", false)
end

--- Show another suggestion in place of the one that is shown.
function M.ask_for_another()
  if ghost.is_here() and ghost.another() then
    return
  end
  local kind, source = "edit", edit
  if ghost.is_here() then
    kind, source = "text", ghost
  end
  asked = now()
  ask_kind(kind, source, asked, true, true, true)
  mark_if_long()
end

local function changed()
  ghost.follow()
  edit.follow()
  ask_soon(true)
end

local function moved()
  local state = now()
  if state.buffer == asked.buffer and state.tick ~= asked.tick and state.mode == "i" then
    return -- typing: the event of the change follows
  end
  if not ghost.is_here() then
    ghost.clear("ignore")
  end
  edit.hint()
  if not vim.deep_equal(state, asked) then
    ask_soon(false)
  end
end

--- True if ghost text was visible when insert mode ended. It is requested again on return.
local left_ghost_text = false

local function left_insert_mode()
  -- Leaving insert mode does not reject a suggestion.
  left_ghost_text = ghost.clear("ignore")
  if left_ghost_text then
    answers.ended("text", "left")
  end
  if client.is_asking(ghost.METHOD) then
    answers.record("text", asked, "you left insert mode before the answer came")
  end
  client.cancel(ghost.METHOD)
  settled()
end

--- Remove everything from the screen.
function M.clear(how)
  client.cancel(ghost.METHOD)
  client.cancel(edit.METHOD)
  settled()
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
    asked = now() -- entering insert mode is not a change
    if left_ghost_text or (before.buffer == asked.buffer and before.tick ~= asked.tick) then
      ask_soon(true) -- the user returned, or opened a line
    end
    left_ghost_text = false
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
    buffers.forget(event.buf)
  end)
  on("BufFilePre", function(event)
    M.clear()
    buffers.before_rename(event.buf)
  end)
  on("BufFilePost", function(event)
    buffers.after_rename(event.buf)
  end)
  -- ":write name" of a buffer without a name: Neovim deletes that buffer and adds one with a name.
  on("BufDelete", function(event)
    if vim.api.nvim_buf_get_name(event.buf) == "" and vim.api.nvim_buf_is_loaded(event.buf) then
      buffers.before_rename(event.buf)
      vim.schedule(function() -- it may only have left the list of buffers
        buffers.after_rename(event.buf)
      end)
    end
  end)
  on("BufAdd", function(event)
    buffers.after_rename(event.buf)
  end)
  on("FileType", function(event)
    buffers.language_set(event.buf)
  end)
  on("OptionSet", function()
    buffers.check(vim.api.nvim_get_current_buf())
  end, "fileformat")
  on("LspAttach", function(event)
    local attached = vim.lsp.get_client_by_id(event.data.client_id)
    if attached and attached.name == client.NAME then
      require("redraft.status").attached()
      require("redraft.server").attached(event.buf)
      buffers.attached(event.buf)
      client.focus(event.buf)
      require("redraft.notices").greet()
    end
  end)
  on("User", function()
    M.clear()
  end, { "RedraftEnded", "RedraftLeft" })
  on("ColorScheme", marks.colours)
  on("OptionSet", marks.colours, "background")
end

return M
