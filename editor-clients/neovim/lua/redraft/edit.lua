-- The next edit: drawn in place, jumped to, accepted whole or in part, rejected. The server decides
-- what is shown, and where.
local answers = require("redraft.answers")
local client = require("redraft.client")
local config = require("redraft.config")
local diff = require("redraft.diff")
local marks = require("redraft.marks")
local rename = require("redraft.rename")
local text = require("redraft.text")
local undo = require("redraft.undo")

local M = {}

M.METHOD = "redraft/nextEdit"

--- Lines from the cursor beyond which Tab first jumps to an edit, as in the server.
local NEAR_ROWS = 2

--- The shown edit: { id, item, client, cursor, uri, why, more, buffer, tick, seen, changes, lines,
--- first, last, hidden, faded, reported, taken } with the replaced range { row, column, to_row, to_column, with },
--- in bytes. `seen` is the buffer and its version that the answer was for. `buffer` and the range are nil while the file is not loaded. A whole rename has a field
--- `rename` and no changes: it is shown by its label alone.
local shown = nil

--- Return whether an edit is visible. It is not between a nearby change and the next answer.
function M.visible()
  return shown ~= nil and not shown.faded
end

--- Return what the edit changes, to compare it with the next one; nil without an edit.
function M.change()
  return shown and { shown.uri, shown.item.range, shown.item.text, shown.rename and shown.rename.label }
end

--- Drop the edit. `how` ("dismiss", "reject" or "ignore") is reported to the server.
function M.clear(how)
  local edit = shown
  shown = nil
  if not edit then
    return false
  end
  marks.hint(nil)
  if edit.buffer then
    marks.clear(edit.buffer)
  end
  if how then
    answers.ended("edit", how)
    client.turned_down(edit.client, edit.item, "redraft." .. how)
  end
  return true
end

--- Drop what is drawn in an unloaded buffer.
function M.forget(buffer)
  if shown and shown.buffer == buffer then
    M.clear()
  end
end

-- --- its place ------------------------------------------------------------------------------

--- Fill in the replaced range. The server counts a line after the last line end; Neovim does not.
local function locate(edit)
  local buffer, range = edit.buffer, edit.item.range
  local encoding, count = edit.client.offset_encoding, vim.api.nvim_buf_line_count(buffer)
  local with = edit.item.text:gsub("\r\n?", "\n")
  local row, to_row = range.start.line, range["end"].line
  local column = row < count and text.column(buffer, range.start, encoding) or nil
  local to_column = to_row < count and text.column(buffer, range["end"], encoding) or nil
  if not to_column then
    to_row, to_column = count - 1, #text.line(buffer, count - 1)
    if not column then
      row, column, with = to_row, to_column, "\n" .. with
    end
    if with:sub(-1) == "\n" then
      with = with:sub(1, -2)
    elseif row > 0 and column == 0 then -- the last lines and the line end before them
      row, column = row - 1, #text.line(buffer, row - 1)
    end
  end
  edit.row, edit.column, edit.to_row, edit.to_column = row, column, to_row, to_column
  edit.with = vim.split(with, "\n", { plain = true })
end

--- Fill in the changes to draw, and their new lines.
local function outline(edit)
  local old = vim.api.nvim_buf_get_lines(edit.buffer, edit.row, edit.to_row + 1, false)
  local new = vim.deepcopy(edit.with)
  new[1] = old[1]:sub(1, edit.column) .. new[1]
  new[#new] = new[#new] .. old[#old]:sub(edit.to_column + 1)
  edit.changes, edit.lines = diff.changes(old, new), new
  for _, change in ipairs(edit.changes) do
    change.row = change.row + edit.row
  end
  if #edit.changes > 0 then
    edit.first, edit.last = edit.changes[1].row, edit.changes[#edit.changes].row
  end
end

--- Find the buffer of an edit and its changes. Return false if the buffer has another version or may
--- not be modified.
local function settle(edit)
  local buffer = vim.uri_to_bufnr(edit.uri)
  if not vim.api.nvim_buf_is_loaded(buffer) then
    edit.buffer = nil
    return true
  elseif not vim.bo[buffer].modifiable then
    return false
  end
  local version = edit.item.textDocument.version
  local known = vim.lsp.util.buf_versions[buffer]
  if type(version) == "number" and known and known ~= version then
    return false
  end
  edit.buffer, edit.tick = buffer, vim.api.nvim_buf_get_changedtick(buffer)
  if edit.rename then
    edit.first, edit.last = edit.rename.range.start.line, edit.rename.range.start.line
    return true
  end
  locate(edit)
  outline(edit)
  return #edit.changes > 0
end

--- Return whether the edit changes the cursor's line or one next to it.
function M.is_beside_cursor()
  if not shown or shown.buffer ~= vim.api.nvim_get_current_buf() then
    return false
  end
  local row = text.cursor()
  return row >= shown.first - 1 and row <= shown.last + 1
end

--- Return whether the cursor must go there before the edit is accepted.
local function is_away()
  if shown.rename then
    return false
  end
  if shown.buffer ~= vim.api.nvim_get_current_buf() then
    return true
  end
  local row = text.cursor()
  local line = math.min(shown.first + 1, vim.fn.line("$")) -- lines added at the end are drawn there
  local far = row < shown.first - NEAR_ROWS or row > shown.last + NEAR_ROWS
  return far or line < vim.fn.line("w0") or line > vim.fn.line("w$")
end

--- Return whether the user has typed on since the answer: Tab must not jump out of that.
local function is_typing()
  local buffer = vim.api.nvim_get_current_buf()
  return vim.fn.mode():sub(1, 1) == "i"
    and shown.seen.buffer == buffer
    and shown.seen.tick ~= vim.api.nvim_buf_get_changedtick(buffer)
end

-- --- drawing --------------------------------------------------------------------------------

local function key_name()
  local keys = require("redraft.keys")
  local key = keys.is_free() and config.values.keys.accept or config.values.keys.accept_always
  return key and " · " .. key:gsub("^<(.*)>$", "%1") or ""
end

--- Return what a hint says of a distant edit: its place, and why it is there as far as that has room.
local function described()
  local line = (shown.first or shown.item.range.start.line) + 1
  local place, where = ("line %d"):format(line), ("at line %d"):format(line)
  if shown.buffer ~= vim.api.nvim_get_current_buf() then
    local name = vim.fs.basename(vim.uri_to_fname(shown.uri))
    place, where = ("%s, line %d"):format(name, line), ("in %s, line %d"):format(name, line)
  end
  local behind = key_name()
  if shown.more > 0 then
    behind = (" · %d more place%s"):format(shown.more, shown.more == 1 and "" or "s") .. behind
  end
  local before = ("→ %s%s: "):format(place, shown.unsure and "?" or "")
  local why = marks.cut(shown.why, before .. behind)
  if why == "" then
    return (shown.unsure and "→ edit? " or "→ edit ") .. where .. behind
  end
  return before .. why .. behind
end

--- Draw a hint to the edit unless it is at the cursor.
function M.hint()
  if not M.visible() or not client.get() then -- not in prompts, terminals, lists of files
    return marks.hint(nil)
  end
  if shown.rename then
    local label = marks.cut(shown.rename.label, key_name())
    return marks.hint((label == "" and "rename" or label) .. key_name())
  end
  if not shown.hidden and not is_away() then
    return marks.hint(shown.unsure and "unsure" .. key_name() or nil)
  end
  marks.hint(not is_typing() and described() or nil)
end

local function draw()
  if shown.buffer and not shown.hidden and not shown.rename then
    marks.draw(shown.buffer, shown.changes, shown.lines)
  end
  M.hint()
  if not shown.reported then
    shown.reported = true
    client.notify(shown.client, "textDocument/didShowInlineEdit", { item = shown.item })
  end
end

--- Draw an answer of the server.
function M.receive(result, from, invoked)
  local item = result and result.edits and result.edits[1]
  if not item then
    return M.clear()
  end
  local edit = { item = item, client = from, id = result.id, uri = item.textDocument.uri }
  edit.cursor, edit.unsure, edit.rename = result.cursor, result.unsure, result.rename
  edit.why, edit.more = result.why or "", result.morePlaces or 0
  local buffer = vim.api.nvim_get_current_buf()
  edit.seen = { buffer = buffer, tick = vim.api.nvim_buf_get_changedtick(buffer) }
  if not settle(edit) then
    return M.clear()
  end
  local again = shown and shown.id == edit.id
  edit.reported, edit.taken = again and shown.reported, again and shown.taken or nil
  edit.hidden = config.values.subtle and not invoked and not (again and not shown.hidden)
  if shown and shown.buffer and shown.buffer ~= edit.buffer then
    marks.clear(shown.buffer)
  end
  shown = edit
  draw()
end

--- Handle a change: an edit of other lines stays until the next answer, a rename does not.
function M.follow()
  M.hint()
  if not shown or not shown.buffer or shown.buffer ~= vim.api.nvim_get_current_buf() then
    return
  end
  local changed = vim.api.nvim_buf_get_changedtick(shown.buffer) ~= shown.tick
  if changed and (shown.rename or M.is_beside_cursor()) then
    marks.clear(shown.buffer)
    marks.hint(nil)
    shown.faded = true
  end
end

-- --- accepting ------------------------------------------------------------------------------

local function place(row, column)
  local buffer = vim.api.nvim_get_current_buf()
  row = math.min(row, vim.api.nvim_buf_line_count(buffer) - 1)
  vim.api.nvim_win_set_cursor(0, { row + 1, math.min(column, #text.line(buffer, row)) })
  vim.cmd("normal! zv") -- open a fold
end

local function jump()
  vim.cmd("normal! m'")
  if shown.buffer ~= vim.api.nvim_get_current_buf() then
    local edit = shown
    local location = { uri = edit.uri, range = edit.item.range }
    vim.lsp.util.show_document(location, edit.client.offset_encoding, { focus = true })
    if not edit.buffer then -- the file was not open: the next answer is for the text it has here
      return M.clear()
    end
    shown = edit -- leaving a buffer dropped it
    if not settle(edit) then
      return M.clear()
    end
  end
  local change = shown.changes[1]
  place(change.row, change.from or 0)
  draw()
end

--- Return whether the edit is for the present text of the buffer.
local function holds()
  return shown.buffer ~= nil and vim.api.nvim_buf_get_changedtick(shown.buffer) == shown.tick
end

--- Return whether `accept` would do something. It would not between a change and the next answer (of a
--- distant edit: while text is typed), or in buffers without the server.
function M.is_ready()
  local away = M.visible() and client.get() ~= nil and (shown.hidden or is_away())
  if away then
    return not is_typing()
  end
  return M.visible() and client.get() ~= nil and holds()
end

local function accept_all()
  local edit = shown
  M.clear()
  if edit.rename then
    return rename.apply(edit)
  end
  undo.begin()
  local row, column, to_row, to_column = edit.row, edit.column, edit.to_row, edit.to_column
  vim.api.nvim_buf_set_text(edit.buffer, row, column, to_row, to_column, edit.with)
  if edit.cursor then
    local column_now = edit.cursor.line < vim.api.nvim_buf_line_count(edit.buffer)
        and text.column(edit.buffer, edit.cursor, edit.client.offset_encoding)
      or 0
    place(edit.cursor.line, column_now)
  end
  undo.finish()
  client.accepted(edit.client, edit.item)
end

--- Functions by kind that apply a change, or a `unit` of it. They return the text, whether that was
--- all, and the cursor.
local apply = {}

function apply.part(buffer, change, unit)
  local new = unit == "word" and text.first_word(change.new) or change.new
  vim.api.nvim_buf_set_text(buffer, change.row, change.from, change.row, change.to, { new })
  return new, new == change.new, change.row, change.from + #new
end

function apply.removed(buffer, change)
  vim.api.nvim_buf_set_lines(buffer, change.row, change.row + 1, false, {})
  return "", true, change.row, 0
end

function apply.inserted(buffer, change)
  local line = change.lines[1]
  vim.api.nvim_buf_set_lines(buffer, change.row, change.row, false, { line })
  return line .. "\n", #change.lines == 1, change.row, #line
end

--- Return how many changes a `unit` covers: removed lines count with the first line in their place, a
--- "line" with all its changes.
local function taken_with(unit)
  local changes, count = shown.changes, 1
  while changes[count].kind == "removed" and changes[count + 1] do
    count = count + 1
    if changes[count].kind == "part" then
      return count - 1
    end
  end
  local first = changes[1]
  while unit == "line" and first.kind == "part" and changes[count + 1] do
    if changes[count + 1].kind ~= "part" or changes[count + 1].row ~= first.row then
      break
    end
    count = count + 1
  end
  return count
end

local function accept_part(unit)
  local edit, count, shift = shown, taken_with(unit), { row = 0, column = 0 }
  M.clear()
  undo.begin()
  local written, whole = {}, count == #edit.changes
  for i = 1, count do
    local change = vim.deepcopy(edit.changes[i]) -- earlier changes move later ones
    change.row = change.row - shift.row
    if change.kind == "part" then
      change.from, change.to = change.from + shift.column, change.to + shift.column
    end
    local new, all, row, column = apply[change.kind](edit.buffer, change, unit)
    if change.kind == "removed" then
      shift.row = shift.row + 1
    elseif change.kind == "part" then
      shift.column = shift.column + #new - (change.to - change.from)
    end
    written[#written + 1], whole = new, whole and all
    place(row, column)
  end
  undo.finish()
  if whole then
    return client.accepted(edit.client, edit.item)
  end
  edit.taken = (edit.taken or 0) + text.utf16(table.concat(written))
  local report = { item = edit.item, acceptedLength = edit.taken }
  client.notify(edit.client, "textDocument/didPartiallyAcceptCompletion", report)
end

--- Go to the edit, or accept it or its first "word" or "line". Return false if there is none.
function M.accept(unit)
  if not M.is_ready() then
    return false
  end
  if shown.hidden then
    shown.hidden = false
    draw()
  elseif is_away() then
    jump()
  elseif unit and not shown.rename then
    accept_part(unit)
  else
    accept_all()
  end
  return true
end

return M
