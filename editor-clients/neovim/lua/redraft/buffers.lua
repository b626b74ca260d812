-- Buffers of the server: opened anew when their name or language changes, and left alone where the server
-- would count their lines differently.
local client = require("redraft.client")

local M = {}

--- Clients to attach again once a buffer has its new name: their ids, by buffer.
local renamed = {}
--- Languages under which buffers were opened, by buffer.
local languages = {}
--- Buffers that are left alone: { id of the client, reason }.
local alone = {}
--- Buffers whose changes are looked at.
local watched = {}

--- Return why a buffer gets no suggestions, or nil.
function M.why(buffer)
  return alone[buffer] and alone[buffer].reason
end

local function detach(buffer)
  local attached = client.get(buffer)
  if attached then
    vim.lsp.buf_detach_client(buffer, attached.id)
    return attached.id
  end
end

local function attach(buffer, id)
  local known = id and vim.lsp.get_client_by_id(id)
  if known and not known:is_stopped() and vim.api.nvim_buf_is_loaded(buffer) and not client.get(buffer) then
    vim.lsp.buf_attach_client(buffer, id)
  end
end

--- Close a buffer whose name is about to change: the server knows it by its name.
function M.before_rename(buffer)
  renamed[buffer] = detach(buffer) or renamed[buffer]
end

--- Open a buffer under its new name.
function M.after_rename(buffer)
  local id = renamed[buffer]
  renamed[buffer] = nil
  attach(buffer, id)
end

--- Open a buffer anew whose language is another than the server was told.
function M.language_set(buffer)
  if languages[buffer] and languages[buffer] ~= vim.bo[buffer].filetype then
    attach(buffer, detach(buffer))
  end
end

-- --- line breaks ----------------------------------------------------------------------------

--- Return whether a line holds what the protocol takes for a line break. Neovim sends a NUL as "\n", and
--- a CR at the end of a line as a part of its CRLF, unless that is there already.
local function is_broken(line, format, is_last)
  if line:find("\n", 1, true) then
    return true
  end
  local at = line:find("\r", 1, true)
  return at ~= nil and (at < #line or format == "dos" or is_last)
end

--- Return the first such line, from 1, or nil.
local function broken_line(buffer)
  local lines, format = vim.api.nvim_buf_get_lines(buffer, 0, -1, false), vim.bo[buffer].fileformat
  local has_last_end = vim.bo[buffer].eol
  for row, line in ipairs(lines) do
    if is_broken(line, format, row == #lines and not has_last_end) then
      return row
    end
  end
end

local REASON = "line %d contains a carriage return or a NUL, where the server would begin a line"

--- Leave a buffer alone, or open it again, by the lines that it has now.
function M.check(buffer)
  if not vim.api.nvim_buf_is_loaded(buffer) then
    return
  end
  local row, known = broken_line(buffer), alone[buffer]
  if row and not known then
    require("redraft.server").hold({ buffer })
    alone[buffer] = { id = detach(buffer) }
    vim.api.nvim_exec_autocmds("User", { pattern = "RedraftLeft", modeline = false })
  end
  if row then
    alone[buffer].reason = REASON:format(row)
  elseif known then
    alone[buffer] = nil
    attach(buffer, known.id)
  end
end

local function watch(buffer)
  if watched[buffer] then
    return
  end
  watched[buffer] = true
  vim.api.nvim_buf_attach(buffer, false, {
    on_lines = function(_, _, _, first, _, last)
      local format = vim.bo[buffer].fileformat
      for _, line in ipairs(vim.api.nvim_buf_get_lines(buffer, first, last, false)) do
        if alone[buffer] or is_broken(line, format, false) then
          vim.schedule(function()
            M.check(buffer)
          end)
          return
        end
      end
    end,
    on_reload = function()
      vim.schedule(function()
        M.check(buffer)
      end)
    end,
    on_detach = function()
      watched[buffer] = nil
    end,
  })
end

--- Note that the server has opened a buffer.
function M.attached(buffer)
  languages[buffer] = vim.bo[buffer].filetype
  watch(buffer)
  vim.schedule(function() -- Neovim sets a buffer's state behind this event
    if alone[buffer] then -- attached again by its file type
      alone[buffer].id = detach(buffer) or alone[buffer].id
    end
    M.check(buffer)
  end)
end

--- Forget a buffer that is unloaded.
function M.forget(buffer)
  languages[buffer], alone[buffer] = nil, nil
end

return M
