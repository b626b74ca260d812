-- Colours that new text will have in the buffer, from tree-sitter. Without a parser it has one colour.
local M = {}

--- By line: { [byte from 1] = highlight group }.
local function groups_of(lines, language)
  local source = table.concat(lines, "\n")
  local groups = {}
  local parser = vim.treesitter.get_string_parser(source, language)
  local query = vim.treesitter.query.get(language, "highlights")
  if not query then
    return groups
  end
  local root = parser:parse()[1]:root()
  for id, node in query:iter_captures(root, source, 0, -1) do
    local name = query.captures[id]
    if name:sub(1, 1) ~= "_" and name ~= "spell" and name ~= "nospell" then
      local first, from, last, to = node:range()
      for row = first, last do
        local line = lines[row + 1] or ""
        groups[row + 1] = groups[row + 1] or {}
        for byte = row == first and from + 1 or 1, row == last and to or #line do
          groups[row + 1][byte] = ("@%s.%s"):format(name, language)
        end
      end
    end
  end
  return groups
end

--- Return a function (line number, first byte, last byte) that returns the chunks of virtual text for
--- that part of `lines`, on top of the highlight group `base`.
function M.painter(buffer, lines, base)
  local language = vim.treesitter.language.get_lang(vim.bo[buffer].filetype) or ""
  local known, groups = pcall(groups_of, lines, language)
  return function(number, from, to)
    local line, chunks = lines[number], {}
    local colours = known and groups[number] or {}
    local at = from
    while at <= to do
      local last = at
      while last < to and colours[last + 1] == colours[at] do
        last = last + 1
      end
      local group = colours[at] and { base, colours[at] } or base
      chunks[#chunks + 1] = { line:sub(at, last), group }
      at = last + 1
    end
    return chunks
  end
end

return M
