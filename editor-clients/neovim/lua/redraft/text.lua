-- Places and texts: between the server's UTF-16 positions and a buffer's rows and bytes, and how
-- virtual text is cut and drawn. Pure but for reading buffers.
local M = {}

--- A buffer's lines have no line ends.
function M.lines(text)
  return vim.split(text:gsub("\r\n?", "\n"), "\n", { plain = true })
end

function M.line(buffer, row)
  return vim.api.nvim_buf_get_lines(buffer, row, row + 1, false)[1] or ""
end

--- Bytes of `position` in its line; beyond the end is the end.
function M.column(buffer, position, encoding)
  return vim.str_byteindex(M.line(buffer, position.line), encoding, position.character, false)
end

--- The cursor of the current window: row and column from 0, in bytes.
function M.cursor()
  local at = vim.api.nvim_win_get_cursor(0)
  return at[1] - 1, at[2]
end

--- `message` as far as the line for messages holds it, or `room` columns: more, and Neovim waits for a
--- key, and swallows it. For what nobody asked to read at length.
function M.fit(message, room)
  room = room or vim.v.echospace
  if vim.fn.strdisplaywidth(message) <= room then
    return message
  end
  return vim.fn.strcharpart(message, 0, room - 1) .. "…"
end

--- Return `message` in `room` columns: without what stands in brackets, if it is longer, then cut.
function M.brief(message, room)
  if vim.fn.strdisplaywidth(message) > room then
    message = message:gsub(" %b()", "")
  end
  return M.fit(message, room)
end

function M.utf16(text)
  return vim.str_utfindex(text, "utf-16")
end

--- The first word of `text` with the blanks before it: a run of keyword characters, or of others.
function M.first_word(text)
  local word = vim.fn.matchstr(text, [[^\_s*\%(\k\+\|\%(\k\@!\S\)\+\)]])
  return word == "" and text or word
end

--- The rest of the line, with the line end before it.
function M.first_line(text)
  return text:match("^\n?[^\n]*")
end

local function characters(text)
  return vim.fn.split(text, [[\zs]])
end

--- Where the characters of `old` stand in `new`: what of `new` goes in at which byte of `old`, as a
--- list of { at, text }; nil where they are not all there in their order.
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

--- How many bytes of `old` stand in `part`, the first one in its place.
function M.held(part, old)
  local bytes, left, i = 0, characters(old), 1
  for _, char in ipairs(characters(part)) do
    if left[i] == char then
      bytes, i = bytes + #char, i + 1
    end
  end
  return bytes
end

--- `text` as it looks at display column `at`: virtual text knows no tab stops.
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
