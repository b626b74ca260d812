-- Conversion between UTF-16 positions and rows and bytes of a buffer; cutting of virtual text.
local M = {}

--- Return the text of a buffer's lines, which have no line ends.
function M.lines(text)
  return vim.split(text:gsub("\r\n?", "\n"), "\n", { plain = true })
end

function M.line(buffer, row)
  return vim.api.nvim_buf_get_lines(buffer, row, row + 1, false)[1] or ""
end

--- Return the byte column of `position`, at most the end of its line.
function M.column(buffer, position, encoding)
  return vim.str_byteindex(M.line(buffer, position.line), encoding, position.character, false)
end

--- Return the cursor of the current window: row and column from 0, in bytes.
function M.cursor()
  local at = vim.api.nvim_win_get_cursor(0)
  return at[1] - 1, at[2]
end

--- Return `message` cut to the message line, or to `room` columns. For a longer message Neovim would
--- wait for a key and drop it.
function M.fit(message, room)
  room = room or vim.v.echospace
  if vim.fn.strdisplaywidth(message) <= room then
    return message
  end
  return vim.fn.strcharpart(message, 0, room - 1) .. "…"
end

--- Return `message` in `room` columns: first without brackets, then cut.
function M.brief(message, room)
  if vim.fn.strdisplaywidth(message) > room then
    message = message:gsub(" %b()", "")
  end
  return M.fit(message, room)
end

function M.utf16(text)
  return vim.str_utfindex(text, "utf-16")
end

--- Return the first word of `text` with the blanks before it: keyword characters, or others.
function M.first_word(text)
  local word = vim.fn.matchstr(text, [[^\_s*\%(\k\+\|\%(\k\@!\S\)\+\)]])
  return word == "" and text or word
end

--- Return the rest of the line, with the line end before it.
function M.first_line(text)
  return text:match("^\n?[^\n]*")
end

local function characters(text)
  return vim.fn.split(text, [[\zs]])
end

--- Return the insertions that turn `old` into `new`, as a list of { at, text } with byte offsets in
--- `old`; nil if `new` does not contain the characters of `old` in order.
function M.between(new, old)
  local parts, at, left = {}, 0, characters(old)
  local i, piece = 1, ""
  for _, char in ipairs(characters(new)) do
    if left[i] == char then
      if piece ~= "" then
        parts[#parts + 1] = { at = at, text = piece }
      end
      at, i, piece = at + #char, i + 1, ""
    else
      piece = piece .. char
    end
  end
  if left[i] then
    return nil
  end
  if piece ~= "" or #parts == 0 then
    parts[#parts + 1] = { at = at, text = piece }
  end
  return parts
end

--- Return how many bytes of `old` are in `part`, from its first byte on.
function M.held(part, old)
  local bytes, left, i = 0, characters(old), 1
  for _, char in ipairs(characters(part)) do
    if left[i] == char then
      bytes, i = bytes + #char, i + 1
    end
  end
  return bytes
end

--- Return `text` with tabs expanded at display column `at`, because virtual text has no tab stops.
function M.shown(text, at, tabstop)
  if not text:find("\t", 1, true) then
    return text
  end
  local parts = {}
  for before, tab in text:gmatch("([^\t]*)(\t?)") do
    at = at + vim.fn.strdisplaywidth(before)
    parts[#parts + 1] = before
    if tab ~= "" then
      local width = tabstop - at % tabstop
      parts[#parts + 1] = (" "):rep(width)
      at = at + width
    end
  end
  return table.concat(parts)
end

return M
