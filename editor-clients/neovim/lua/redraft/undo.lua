-- Undo steps: what is accepted is a separate step.
local M = {}

local BREAK = vim.api.nvim_replace_termcodes("<C-g>u", true, false, true)

--- Begin a step: an undo does not take what was typed before.
function M.begin()
  vim.go.undolevels = vim.go.undolevels
end

--- End a step: an undo of what is typed from here on does not take it. In insert mode only CTRL-G u
--- does that; it goes before keys that were typed since.
function M.finish()
  if vim.fn.mode():sub(1, 1) == "i" then
    vim.api.nvim_feedkeys(BREAK, "ni", false)
  end
end

return M
