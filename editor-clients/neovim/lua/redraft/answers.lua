-- The last answers about ghost text and the next edit: why nothing is shown.
local M = {}

--- By kind, "text" or "edit": { buffer, tick, row, reason, revealable }. `reason` is "" while a
--- suggestion is shown; `revealable` is true if a gesture would show a hidden one.
local last = {}

--- Return the buffer, its version, the cursor and the mode, which identify a request.
function M.now()
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

--- Record the answer to a request of `kind` about `state`. `reason` says why nothing is shown, or "".
function M.record(kind, state, reason, revealable)
  last[kind] = { buffer = state.buffer, tick = state.tick, row = state.row, reason = reason }
  last[kind].revealable = revealable
end

local ENDS = {
  dismiss = "hidden with Esc; it may come back",
  reject = "rejected just now",
  left = "hidden when you left insert mode; it may come back",
  ignore = "it was shown, and you went on",
}

--- Record that a suggestion is no longer shown; `how` is a key of `ENDS`.
function M.ended(kind, how)
  if last[kind] then
    last[kind].reason, last[kind].revealable = ENDS[how], false
    vim.schedule(require("redraft.status").announce)
  end
end

local NAMES = { text = "Ghost text", edit = "Next edit" }

--- Return the last answer of `kind` as { reason, revealable }, or nil if it is about another buffer or
--- outdated. Ghost text is requested in insert mode only. Leaving that mode may change the text (Neovim
--- removes unused indentation), so its last reason is kept until the next one.
function M.reason(kind)
  local state, found = M.now(), last[kind]
  if not found or found.buffer ~= state.buffer or found.reason == "" then
    return nil
  end
  local left_insert_mode = kind == "text" and state.mode ~= "i"
  if found.tick ~= state.tick and not left_insert_mode then
    return nil
  end
  local reason = found.reason
  local lower = reason:lower()
  if not (lower:find(NAMES[kind]:lower(), 1, true) or vim.startswith(lower, "no suggestions")) then
    reason = NAMES[kind] .. ": " .. reason
  end
  if kind == "text" and found.row ~= state.row then
    reason = ("Line %d: %s"):format(found.row, reason)
  end
  return { reason = reason, revealable = found.revealable }
end

--- Return whether the next edit was requested exactly here.
function M.is_here(state)
  local now = M.now()
  return state.buffer == now.buffer
    and state.tick == now.tick
    and state.row == now.row
    and state.column == now.column
end

return M
