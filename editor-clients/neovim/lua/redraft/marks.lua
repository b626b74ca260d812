-- Draws an edit in its buffer: removed text tinted and struck through, new text as virtual text and
-- lines, tinted, underlined and with syntax colours, and a hint to a distant edit. Nothing differs by
-- colour alone.
local syntax = require("redraft.syntax")
local text = require("redraft.text")

local M = {}

local space = vim.api.nvim_create_namespace("redraft.edit")

--- Return chunks with tabs expanded from display column `at`.
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

function draw.removed(buffer, change)
  vim.api.nvim_buf_set_extmark(buffer, space, change.row, 0, {
    end_row = change.row + 1,
    hl_group = "RedraftDelete",
    hl_eol = true,
    strict = false, -- there is no line after the last
    virt_text = text.line(buffer, change.row) == "" and { { " ", "RedraftDelete" } } or nil, -- to strike
    virt_text_pos = "overlay",
  })
end

function draw.inserted(buffer, change, paint)
  local below = {}
  for i, line in ipairs(change.lines) do
    local chunks = paint(change.at + i - 1, 1, #line)
    below[i] = untabbed(chunks, 0, vim.bo[buffer].tabstop)
    if #below[i] == 0 then
      below[i] = { { " ", "RedraftAdd" } } -- makes an empty line visible
    end
  end
  -- Virtual lines above the first line of a window are invisible: draw them below if possible.
  vim.api.nvim_buf_set_extmark(buffer, space, math.max(change.row - 1, 0), 0, {
    virt_lines = below,
    virt_lines_above = change.row == 0,
  })
  if change.row == 0 and vim.api.nvim_get_current_buf() == buffer and vim.fn.line("w0") == 1 then
    vim.fn.winrestview({ topfill = #below })
  end
end

--- Draw `changes` (see `redraft.diff`) with the new `lines`.
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

--- Return a function that draws chunks of text behind the line of the cursor; nil removes them.
local function line_end_mark(namespace)
  local drawn_in = nil -- the buffer with the mark
  return function(chunks)
    if drawn_in and vim.api.nvim_buf_is_valid(drawn_in) then
      vim.api.nvim_buf_clear_namespace(drawn_in, namespace, 0, -1)
    end
    drawn_in = nil
    if chunks then
      drawn_in = vim.api.nvim_get_current_buf()
      local mark = { virt_text = chunks, virt_text_pos = "eol" }
      vim.api.nvim_buf_set_extmark(drawn_in, namespace, (text.cursor()), 0, mark)
    end
  end
end

local draw_hint = line_end_mark(vim.api.nvim_create_namespace("redraft.hint"))
local draw_thinking = line_end_mark(vim.api.nvim_create_namespace("redraft.thinking"))

--- Least columns of a shortened text: fewer say nothing.
local LEAST = 12

--- Return as much of `message` as a hint with `others` has room for in the window, or "".
function M.cut(message, others)
  local window = vim.fn.getwininfo(vim.api.nvim_get_current_win())[1]
  local line = text.line(0, (text.cursor()))
  local taken = vim.fn.strdisplaywidth(line) + vim.fn.strdisplaywidth(others) + 6 -- blanks around
  local room = window.width - window.textoff - taken
  return room < LEAST and "" or text.fit(message, room)
end

--- Draw a hint behind the line of the cursor; nil removes it.
function M.hint(message)
  draw_hint(message and { { "  " }, { " " .. message .. " ", "RedraftHint" } })
end

--- Draw the mark of a slow answer behind the line of the cursor; nil removes it.
function M.thinking(mark)
  draw_thinking(mark and { { mark, "RedraftThinking" } })
end

-- --- colours --------------------------------------------------------------------------------

local COLOURS = {
  dark = { add = { "#1f3d2b", 22 }, removed = { "#4b2327", 52 }, hint = { "#8ab4f8", 111 } },
  light = { add = { "#d6f2dd", 194 }, removed = { "#fbdcdc", 224 }, hint = { "#1a56b0", 25 } },
}

--- Return a link to `group`, or to a similar group that is grey without true colour too. In the default
--- colour scheme suggestions would look like the user's text there. The grey is 244 of 256 colours,
--- because many palettes use 8 as the background.
local function grey_like(group)
  local look = vim.api.nvim_get_hl(0, { name = group, link = false })
  if look.ctermfg then
    return { link = group }
  end
  look.ctermfg = vim.api.nvim_eval("&t_Co") == "256" and 244 or 8
  vim.api.nvim_set_hl(0, "RedraftGrey" .. group, look)
  return { link = "RedraftGrey" .. group }
end

--- Define the groups that the colour scheme does not.
function M.colours()
  local colours = COLOURS[vim.o.background]
  local function set(name, values)
    vim.api.nvim_set_hl(0, name, vim.tbl_extend("force", values, { default = true }))
  end
  set("RedraftGhost", grey_like("Comment"))
  set("RedraftItalic", { italic = true })
  set("RedraftUnsure", grey_like("NonText"))
  set("RedraftAdd", { bg = colours.add[1], ctermbg = colours.add[2], underdotted = true })
  set("RedraftDelete", { bg = colours.removed[1], ctermbg = colours.removed[2], strikethrough = true })
  set("RedraftThinking", grey_like("NonText"))
  set("RedraftHint", { fg = colours.hint[1], ctermfg = colours.hint[2], italic = true })
end

return M
