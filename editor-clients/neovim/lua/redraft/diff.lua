-- Smallest changes that an edit makes to lines: parts of lines, removed lines, inserted lines.
--
-- A change is one of
--   { kind = "part", row, from, to, new, start }  bytes [from, to) of old line `row` become `new`,
--                                                 which starts at byte `start` of the new line
--   { kind = "removed", row }                     old line `row` is removed
--   { kind = "inserted", row, lines }             `lines` are inserted before old line `row`
-- with rows from 0 in the old lines, in the order of the text. `at` is the 1-based number of the
-- new line, or of the first of them, that a change writes.
local M = {}

--- Lines less similar than this are drawn as a removed and an inserted line.
local ALIKE = 0.4
--- A hunk with more lines on one side is not aligned line by line, because the cost is their product.
local MOST_ALIGNED = 40

local function tokens(line)
  local found, at = {}, 1
  while at <= #line do
    local token = line:match("^[%w_\128-\255]+", at) or line:match("^%s+", at) or line:sub(at, at)
    found[#found + 1] = token
    at = at + #token
  end
  return found
end

--- Return the differing indices of two lists of strings without line ends.
local function differing(old, new)
  local function joined(list)
    return #list == 0 and "" or table.concat(list, "\n") .. "\n"
  end
  return vim.diff(joined(old), joined(new), { result_type = "indices", algorithm = "minimal" })
end

--- Return the bytes of the first `count` tokens.
local function width(list, count)
  local sum = 0
  for i = 1, count do
    sum = sum + #list[i]
  end
  return sum
end

--- Return a part without the text that stays, if one side begins or ends with the other: for `net` and
--- `net_total`, the inserted text alone.
local function trimmed(part, old)
  local new = part.new
  local short, long = old, new
  if #short > #long then
    short, long = long, short
  end
  if short == "" then
    return part
  elseif vim.startswith(long, short) then
    part.from, part.start, part.new = part.from + #short, part.start + #short, new:sub(#short + 1)
  elseif vim.endswith(long, short) then
    part.to, part.new = part.to - #short, new:sub(1, #new - #short)
  end
  return part
end

--- Return the differing parts of a line: { { from, to, new, start } … }.
function M.parts(old, new)
  local before, after = tokens(old), tokens(new)
  local found = {}
  for _, hunk in ipairs(differing(before, after)) do
    local old_at, old_count, new_at, new_count = unpack(hunk)
    local first = old_count == 0 and old_at or old_at - 1 -- tokens before the difference
    local written = new_count == 0 and new_at or new_at - 1
    local from, to = width(before, first), width(before, first + old_count)
    local new = table.concat(vim.list_slice(after, written + 1, written + new_count))
    local part = { from = from, to = to, new = new, start = width(after, written) }
    found[#found + 1] = trimmed(part, old:sub(from + 1, to))
  end
  return found
end

--- Return the similarity of two lines, 0 to 1: the characters that agree at both ends, without
--- indentation, over the geometric mean of their lengths, so that a short line in a long one counts.
local function likeness(old, new)
  old, new = vim.trim(old), vim.trim(new)
  local short, long = math.min(#old, #new), math.max(#old, #new)
  if short == 0 then
    return long == 0 and 1 or 0
  end
  local head = 0
  while head < short and old:byte(head + 1) == new:byte(head + 1) do
    head = head + 1
  end
  local tail = 0
  while tail < short - head and old:byte(#old - tail) == new:byte(#new - tail) do
    tail = tail + 1
  end
  return (head + tail) / math.sqrt(short * long)
end

--- Return which old line became which new one, in order, as { [old] = new } with the best total.
local function pairs_of(old, new)
  local best, choice = {}, {}
  for i = #old + 1, 1, -1 do
    best[i], choice[i] = {}, {}
    for j = #new + 1, 1, -1 do
      if i > #old or j > #new then
        best[i][j], choice[i][j] = 0, "end"
      else
        local like = likeness(old[i], new[j])
        local both = like >= ALIKE and best[i + 1][j + 1] + like or -1
        local skip_old, skip_new = best[i + 1][j], best[i][j + 1]
        if both >= skip_old and both >= skip_new then
          best[i][j], choice[i][j] = both, "both"
        elseif skip_old >= skip_new then
          best[i][j], choice[i][j] = skip_old, "old"
        else
          best[i][j], choice[i][j] = skip_new, "new"
        end
      end
    end
  end
  local found, i, j = {}, 1, 1
  while i <= #old and j <= #new do
    local chosen = choice[i][j]
    if chosen == "both" then
      found[i] = j
    end
    i = i + ((chosen == "both" or chosen == "old") and 1 or 0)
    j = j + ((chosen == "both" or chosen == "new") and 1 or 0)
  end
  return found
end

local function line_changes(found, row, old, new, at)
  for _, part in ipairs(M.parts(old, new)) do
    part.kind, part.row, part.at = "part", row, at
    found[#found + 1] = part
  end
end

--- Return the changes of a hunk that replaces `old` lines from `row` by `new` lines from number `at`.
local function hunk_changes(found, row, old, new, at)
  local aligned = #old <= MOST_ALIGNED and #new <= MOST_ALIGNED and pairs_of(old, new) or {}
  local written = 0
  local function insert(before, upto)
    if upto > written then
      local lines = vim.list_slice(new, written + 1, upto)
      found[#found + 1] = { kind = "inserted", row = before, lines = lines, at = at + written }
      written = upto
    end
  end
  for i, line in ipairs(old) do
    if aligned[i] then
      insert(row + i - 1, aligned[i] - 1)
      line_changes(found, row + i - 1, line, new[aligned[i]], at + aligned[i] - 1)
      written = aligned[i]
    else
      found[#found + 1] = { kind = "removed", row = row + i - 1, at = at + written }
    end
  end
  insert(row + #old, #new)
end

--- Return the changes from `old` to `new`, both lists of lines.
function M.changes(old, new)
  local found = {}
  for _, hunk in ipairs(differing(old, new)) do
    local old_at, old_count, new_at, new_count = unpack(hunk)
    local row = old_count == 0 and old_at or old_at - 1
    local before = vim.list_slice(old, row + 1, row + old_count)
    local after = new_count == 0 and {} or vim.list_slice(new, new_at, new_at + new_count - 1)
    hunk_changes(found, row, before, after, new_count == 0 and new_at + 1 or new_at)
  end
  return found
end

return M
