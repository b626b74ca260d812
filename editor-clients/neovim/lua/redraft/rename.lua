-- Applies whole renames: by another language server of the buffer where one knows all places,
-- otherwise by the edit of Redraft's server.
local client = require("redraft.client")
local text = require("redraft.text")
local undo = require("redraft.undo")

local M = {}

--- Longest wait for a language server. Neovim does not redraw and takes no keys meanwhile.
local WAIT_MS = 2000

--- Return the number of places and of files that a workspace edit changes.
local function count(edit)
  local places, files = 0, 0
  for _, change in ipairs(edit.documentChanges or {}) do
    places, files = places + #(change.edits or {}), files + (change.edits and 1 or 0)
  end
  for _, edits in pairs(not edit.documentChanges and edit.changes or {}) do
    places, files = places + #edits, files + 1
  end
  return places, files
end

--- Put `name` in place of `gone` where the definition is. Return false if `gone` is not there.
local function put(buffer, row, column, gone, name)
  if text.line(buffer, row):sub(column + 1, column + #gone) ~= gone then
    return false
  end
  vim.api.nvim_buf_set_text(buffer, row, column, row, column + #gone, { name })
  return true
end

--- Rename by another language server. It no longer finds the uses of a definition that has the new name
--- already, so the old name is put back while it works. Return false if it knows fewer places.
local function by_other_server(edit)
  local buffer, rename = edit.buffer, edit.rename
  if rename.old == "" then
    return false -- another change than a rename
  end
  for _, other in ipairs(vim.lsp.get_clients({ bufnr = buffer, method = "textDocument/rename" })) do
    if other.name ~= client.NAME then
      local row = rename.range.start.line
      local column = text.column(buffer, rename.range.start, edit.client.offset_encoding)
      if not put(buffer, row, column, rename.new, rename.old) then
        return false
      end
      local at = { line = row, character = 0 }
      at.character = vim.str_utfindex(text.line(buffer, row), other.offset_encoding, column)
      local document = { uri = vim.uri_from_bufnr(buffer) }
      local params = { textDocument = document, position = at, newName = rename.new }
      local answer = other:request_sync("textDocument/rename", params, WAIT_MS, buffer)
      local found = answer and not answer.err and answer.result or nil
      if found and count(found) > rename.places then -- with the definition
        vim.lsp.util.apply_workspace_edit(found, other.offset_encoding)
        return found
      end
      put(buffer, row, column, rename.old, rename.new)
    end
  end
  return false
end

--- Apply a rename that the user accepted. Return false if a file has changed since it was offered.
function M.apply(edit)
  local params = { command = "redraft.rename", arguments = { edit.id } }
  local method, buffer = "workspace/executeCommand", edit.buffer
  local answer, why = edit.client:request_sync(method, params, WAIT_MS, buffer)
  if not answer or answer.err then
    vim.notify("Redraft: " .. (answer and answer.err.message or why), vim.log.levels.WARN)
    return false
  end
  undo.begin()
  local found = by_other_server(edit)
  if not found then
    found = answer.result.edit
    for _, change in ipairs(found.documentChanges) do
      change.textDocument.version = nil -- checked by the server; putting a name back raised it
    end
    vim.lsp.util.apply_workspace_edit(found, edit.client.offset_encoding)
  end
  undo.finish()
  local _, files = count(found)
  if files > 1 then
    vim.notify(("Redraft: renamed in %d files; :wall writes them"):format(files))
  end
  return true
end

return M
