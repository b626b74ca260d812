-- Ghost text at the cursor: drawn, accepted whole or in part, and kept while the user types it.
local answers = require("redraft.answers")
local client = require("redraft.client")
local config = require("redraft.config")
local text = require("redraft.text")
local undo = require("redraft.undo")

local M = {}

M.METHOD = "textDocument/inlineCompletion"

local space = vim.api.nvim_create_namespace("redraft.ghost")
local MARK = 1 -- constant, so that drawing again does not flicker

--- The drawn text: { buffer, row, column, text, over, behind, item, client, tick, reported, hidden }, with
--- row and column from 0 in bytes. `text` is the rest of the item; `over` is the number of bytes that it
--- replaces of the text `behind` the cursor; `tick` is the buffer's version; `invoked` is true after a
--- gesture.
local shown = nil

--- The items of the last answer that had several, and the number of the drawn one.
local choice = { items = {}, at = 1 }

function M.visible()
  return shown ~= nil
end

--- Return the text left to insert, or nil.
function M.text()
  return shown and shown.text
end

--- Drop the ghost text. `how` ("dismiss", "reject" or "ignore") is reported to the server.
function M.clear(how)
  local ghost = shown
  shown = nil
  if not ghost then
    return false
  end
  if vim.api.nvim_buf_is_valid(ghost.buffer) then
    vim.api.nvim_buf_clear_namespace(ghost.buffer, space, 0, -1)
  end
  if how then
    answers.ended("text", how)
    client.turned_down(ghost.client, ghost.item, "redraft." .. how)
  end
  return true
end

--- Return the marks of ghost text, each with its byte offset behind the cursor.
local function drawing(ghost)
  if ghost.hidden then
    return { { at = 0, virt_text = { { " ◇", "RedraftHint" } }, virt_text_pos = "eol" } }
  end
  local tabstop = vim.bo[ghost.buffer].tabstop
  local lines, line = text.lines(ghost.text), text.line(ghost.buffer, ghost.row)
  local marks, below = {}, nil
  local colour = { ghost.item.unsure and "RedraftUnsure" or "RedraftGhost", "RedraftItalic" }
  for _, part in ipairs(text.between(lines[1], ghost.behind:sub(1, ghost.over))) do
    local before = vim.fn.strdisplaywidth(line:sub(1, ghost.column + part.at))
    local chunk = { { text.shown(part.text, before, tabstop), colour } }
    marks[#marks + 1] = { at = part.at, virt_text = chunk, virt_text_pos = "inline", hl_mode = "combine" }
  end
  for i = 2, #lines do
    below = below or {}
    below[#below + 1] = { { text.shown(lines[i], 0, tabstop), colour } }
  end
  marks[1].virt_lines = below
  if ghost.item.unsure then -- shown only because of a gesture
    marks[#marks + 1] = { at = #ghost.behind, virt_text = { { "?", "RedraftHint" } }, virt_text_pos = "eol" }
  end
  return marks
end

local function draw(ghost)
  if shown and shown.buffer ~= ghost.buffer then
    M.clear()
  end
  local marks = drawing(ghost)
  for i, mark in ipairs(marks) do
    local at = ghost.column + mark.at
    mark.id, mark.at = MARK + i - 1, nil
    vim.api.nvim_buf_set_extmark(ghost.buffer, space, ghost.row, at, mark)
  end
  for _, old in ipairs(vim.api.nvim_buf_get_extmarks(ghost.buffer, space, 0, -1, {})) do
    if old[1] >= MARK + #marks then
      vim.api.nvim_buf_del_extmark(ghost.buffer, space, old[1])
    end
  end
  ghost.tick = vim.api.nvim_buf_get_changedtick(ghost.buffer)
  shown = ghost
  if not ghost.reported then
    ghost.reported = true
    client.notify(ghost.client, "textDocument/didShowCompletion", { item = ghost.item })
  end
end

--- Return the part of an item that is not in the buffer yet, or nil if it cannot be drawn here.
local function ghost_of(item, from)
  local buffer, row, column = vim.api.nvim_get_current_buf(), text.cursor()
  local line, over = text.line(buffer, row), 0
  local rest = item.insertText:gsub("\r\n?", "\n")
  if item.range then
    if item.range.start.line ~= row or item.range["end"].line ~= row then
      return nil
    end
    local start = text.column(buffer, item.range.start, from.offset_encoding)
    local typed = line:sub(start + 1, column)
    if rest:sub(1, #typed) ~= typed then
      return nil
    end
    rest = rest:sub(#typed + 1)
    over = math.max(0, text.column(buffer, item.range["end"], from.offset_encoding) - column)
  end
  local behind = line:sub(column + 1)
  if rest == "" or not text.between(text.lines(rest)[1], behind:sub(1, over)) then
    return nil
  end
  local ghost = { buffer = buffer, row = row, column = column, text = rest, item = item }
  ghost.over, ghost.behind, ghost.client = over, behind, from
  return ghost
end

local function id_of(ghost)
  return ghost.item.command and ghost.item.command.arguments[1]
end

--- Draw an answer of the server.
function M.receive(result, from, invoked)
  if vim.fn.mode():sub(1, 1) ~= "i" then
    return
  end
  local items = result and (result.items or result) or {}
  choice = { items = items, at = 1 }
  local ghost = items[1] and ghost_of(items[1], from)
  if not ghost then
    return M.clear()
  end
  local again = shown and id_of(shown) ~= nil and id_of(shown) == id_of(ghost)
  ghost.reported = again and shown.reported
  ghost.invoked = invoked or (again and shown.invoked)
  ghost.hidden = config.values.subtle and not invoked and not (again and not shown.hidden)
  draw(ghost)
end

--- Handle a change: keep the ghost text while it is typed, otherwise drop it.
function M.follow()
  if not shown then
    return
  end
  if shown.tick == vim.api.nvim_buf_get_changedtick(shown.buffer) then
    return -- our own change
  end
  local row, column = text.cursor()
  local line = vim.api.nvim_get_current_line()
  local typed, rest = line:sub(shown.column + 1, column), ""
  if row == shown.row and typed ~= "" and shown.text:sub(1, #typed) == typed then
    rest = shown.text:sub(#typed + 1)
  end
  -- Brackets that the editor closes are behind the cursor; the server sends what fits before them.
  local same = line:sub(column + 1) == shown.behind
  if rest ~= "" and same and text.between(text.lines(rest)[1], shown.behind:sub(1, shown.over)) then
    shown.column, shown.text = column, rest
    draw(shown)
  else
    M.clear()
  end
end

--- Return whether there is ghost text at the cursor.
function M.is_here()
  local row, column = text.cursor()
  return shown ~= nil and shown.row == row and shown.column == column
end

--- Draw the next text of the last answer, the first one after the last. Return false if it had but one,
--- or is about another version of the buffer.
function M.another()
  local count = #choice.items
  if count < 2 or not M.is_here() or shown.tick ~= vim.api.nvim_buf_get_changedtick(shown.buffer) then
    return false
  end
  choice.at = choice.at % count + 1
  local ghost = ghost_of(choice.items[choice.at], shown.client)
  if not ghost then
    return false
  end
  ghost.invoked = true
  draw(ghost)
  return true
end

-- --- accepting ------------------------------------------------------------------------------

--- Write `part` at the cursor, over the text that it replaces, as one undo step.
local function insert(ghost, part)
  undo.begin()
  local lines = vim.split(part, "\n", { plain = true })
  local row, column = ghost.row, ghost.column
  local over = part == ghost.text and ghost.over or text.held(lines[1], ghost.behind:sub(1, ghost.over))
  vim.api.nvim_buf_set_text(ghost.buffer, row, column, row, column + over, lines)
  ghost.over, ghost.behind = ghost.over - over, ghost.behind:sub(over + 1)
  row = row + #lines - 1
  column = #lines == 1 and column + #lines[1] or #lines[#lines]
  vim.api.nvim_win_set_cursor(0, { row + 1, column })
  undo.finish()
  return row, column
end

--- Show hidden ghost text.
local function reveal()
  if shown and shown.hidden then
    shown.hidden = false
    draw(shown)
    return true
  end
  return false
end

--- Write the beginning of the ghost text, and keep showing the rest.
local function shorten(part)
  local ghost = shown
  ghost.row, ghost.column = insert(ghost, part)
  ghost.text = ghost.text:sub(#part + 1)
  draw(ghost)
end

local function take(part)
  local ghost = shown
  if part == ghost.text then
    M.clear()
    insert(ghost, part)
    client.accepted(ghost.client, ghost.item)
    return
  end
  shorten(part)
  local whole, rest = ghost.item.insertText, ghost.text
  if whole:find("\r\n", 1, true) then
    rest = rest:gsub("\n", "\r\n")
  end
  local report = { item = ghost.item, acceptedLength = text.utf16(whole) - text.utf16(rest) }
  client.notify(ghost.client, "textDocument/didPartiallyAcceptCompletion", report)
end

--- Insert the ghost text or its first "word" or "line". Return false if there is none.
function M.accept(unit)
  if not M.is_here() then
    return false
  end
  if reveal() then
    return true
  end
  local cut = { word = text.first_word, line = text.first_line }
  take(unit and cut[unit](shown.text) or shown.text)
  return true
end

--- Give the line the indentation of the ghost text, where the cursor stands before it. False where
--- there is nothing to indent, or a gesture asked for the text: then Tab takes it at once.
function M.indent()
  if not M.is_here() or shown.hidden or shown.invoked then
    return false
  end
  local before = text.line(shown.buffer, shown.row):sub(1, shown.column)
  local indentation = shown.text:match("^[ \t]+")
  if not indentation or indentation == shown.text or before:find("%S") then
    return false
  end
  shorten(indentation)
  return true
end

return M
