-- Draws an edit in its buffer: what goes tinted, what comes as virtual text and virtual lines in the
-- colours it will have, and a hint where the edit is away from the cursor. Knows nothing of servers.
local syntax = require("redraft.syntax")
local text = require("redraft.text")

local M = {}

local space = vim.api.nvim_create_namespace("redraft.edit")
local hints = vim.api.nvim_create_namespace("redraft.hint")

--- Chunks as they look from display column `at` on.
local function untabbed(chunks, at, tabstop)
  for _, chunk in ipairs(chunks) do
    chunk[1] = text.shown(chunk[1], at, tabstop)
    at = at + vim.fn.strdisplaywidth(chunk[1])
  end
  return chunks
end

local draw = {}

function draw.part(buffer, change, paint)
  local row = change.row
  if change.to > change.from then
    vim.api.nvim_buf_set_extmark(buffer, space, row, change.from, {
      end_col = change.to,
      hl_group = "RedraftDelete",
    })
  end
  if change.new ~= "" then
    local chunks = paint(change.at, change.start + 1, change.start + #change.new)
    local before = vim.fn.strdisplaywidth(text.line(buffer, row):sub(1, change.to))
    vim.api.nvim_buf_set_extmark(buffer, space, row, change.to, {
      virt_text = untabbed(chunks, before, vim.bo[buffer].tabstop),
      virt_text_pos = "inline",
    })
  end
end

function draw.gone(buffer, change)
  vim.api.nvim_buf_set_extmark(buffer, space, change.row, 0, {
    end_row = change.row + 1,
    hl_group = "RedraftDelete",
    hl_eol = true,
    strict = false, -- the last line has none behind it
  })
end

function draw.come(buffer, change, paint)
  local below = {}
  for i, line in ipairs(change.lines) do
    local chunks = paint(change.at + i - 1, 1, #line)
    below[i] = untabbed(chunks, 0, vim.bo[buffer].tabstop)
    if #below[i] == 0 then
      below[i] = { { " ", "RedraftAdd" } } -- an empty line is to be seen as well
    end
  end
  -- Above the first line of a window, virtual lines are out of sight: hang them below where we can.
  vim.api.nvim_buf_set_extmark(buffer, space, math.max(change.row - 1, 0), 0, {
    virt_lines = below,
    virt_lines_above = change.row == 0,
  })
  if change.row == 0 and vim.api.nvim_get_current_buf() == buffer and vim.fn.line("w0") == 1 then
    vim.fn.winrestview({ topfill = #below })
  end
end

--- Draw `changes` (see `redraft.diff`); `lines` are the new lines they are about.
function M.draw(buffer, changes, lines)
  M.clear(buffer)
  local paint = syntax.painter(buffer, lines, "RedraftAdd")
  for _, change in ipairs(changes) do
    draw[change.kind](buffer, change, paint)
  end
end

function M.clear(buffer)
  if vim.api.nvim_buf_is_valid(buffer) then
    vim.api.nvim_buf_clear_namespace(buffer, space, 0, -1)
  end
end

local hinted = nil -- the buffer with a hint

--- Say something behind the line of the cursor; nil: nothing.
function M.hint(message)
  if hinted and vim.api.nvim_buf_is_valid(hinted) then
    vim.api.nvim_buf_clear_namespace(hinted, hints, 0, -1)
  end
  hinted = nil
  if message then
    hinted = vim.api.nvim_get_current_buf()
    vim.api.nvim_buf_set_extmark(hinted, hints, (text.cursor()), 0, {
      virt_text = { { "  " }, { " " .. message .. " ", "RedraftHint" } },
      virt_text_pos = "eol",
    })
  end
end

local busy = vim.api.nvim_create_namespace("redraft.thinking")
local busy_in = nil -- the buffer with that mark

--- Behind the line of the cursor: an answer is on its way; nil: no longer.
function M.thinking(mark)
  if busy_in and vim.api.nvim_buf_is_valid(busy_in) then
    vim.api.nvim_buf_clear_namespace(busy_in, busy, 0, -1)
  end
  busy_in = nil
  if mark then
    busy_in = vim.api.nvim_get_current_buf()
    vim.api.nvim_buf_set_extmark(busy_in, busy, (text.cursor()), 0, {
      virt_text = { { mark, "RedraftThinking" } },
      virt_text_pos = "eol",
    })
  end
end

-- --- colours --------------------------------------------------------------------------------

local COLOURS = {
  dark = { add = { "#1f3d2b", 22 }, gone = { "#4b2327", 52 }, hint = { "#8ab4f8", 111 } },
  light = { add = { "#d6f2dd", 194 }, gone = { "#fbdcdc", 224 }, hint = { "#1a56b0", 25 } },
}

--- Return a link to `group`, or to a group like it that is grey without true colour as well: in the
--- default colour scheme suggestions would look like the user's own text there. On 256 colours the grey
--- is 244, since many palettes make 8 the background.
local function grey_like(group)
  local look = vim.api.nvim_get_hl(0, { name = group, link = false })
  if look.ctermfg then
    return { link = group }
  end
  look.ctermfg = vim.api.nvim_eval("&t_Co") == "256" and 244 or 8
  vim.api.nvim_set_hl(0, "RedraftGrey" .. group, look)
  return { link = "RedraftGrey" .. group }
end

--- Define what the colour scheme does not.
function M.colours()
  local colours = COLOURS[vim.o.background]
  local function set(name, values)
    vim.api.nvim_set_hl(0, name, vim.tbl_extend("force", values, { default = true }))
  end
  set("RedraftGhost", grey_like("Comment"))
  set("RedraftUnsure", grey_like("NonText"))
  set("RedraftAdd", { bg = colours.add[1], ctermbg = colours.add[2] })
  set("RedraftDelete", { bg = colours.gone[1], ctermbg = colours.gone[2], strikethrough = true })
  set("RedraftThinking", grey_like("NonText"))
  set("RedraftHint", { fg = colours.hint[1], ctermfg = colours.hint[2], italic = true })
end

return M
