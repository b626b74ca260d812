-- What came of the last question about ghost text and of the last one about the next edit, each with
-- the text it was about: so that "why" tells them apart and never speaks of a text that is gone.
-- Knows nothing of drawing.
local M = {}

--- By kind, "text" or "edit": { buffer, tick, row, reason }; `reason` is "" while it is shown.
local last = {}

--- The buffer, its version and the cursor, by which a question and its answer are told from others.
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

--- A question of `kind` about `state` is answered: `reason` says why nothing is shown, "" where
--- something is.
function M.came(kind, state, reason)
  last[kind] = { buffer = state.buffer, tick = state.tick, row = state.row, reason = reason }
end

--- What was shown is shown no longer, for this reason.
function M.gone(kind, reason)
  if last[kind] then
    last[kind].reason = reason
  end
end

local function of(kind, state)
  local found = last[kind]
  if found and found.buffer == state.buffer and found.tick == state.tick and found.reason ~= "" then
    return found
  end
end

--- Why no ghost text and why no next edit is shown for the text as it is now: two strings, each nil
--- where nothing was asked about this text. Ghost text is named with its line once the cursor left it.
function M.reasons()
  local state = M.now()
  local text, edit = of("text", state), of("edit", state)
  local said = text and text.reason
  if said and text.row ~= state.row then
    said = ("%s (line %d)"):format(said, text.row)
  end
  return said, edit and edit.reason
end

--- Was the next edit asked about exactly here?
function M.is_here(state)
  local now = M.now()
  return state.buffer == now.buffer
    and state.tick == now.tick
    and state.row == now.row
    and state.column == now.column
end

return M
