-- The connection to the language server: requests, reports, commands, settings.
local M = {}

M.NAME = "redraft"

--- Running requests, by method: { client, id }.
local pending = {}

--- Return the client of a buffer (0: the current one) that takes requests, or nil.
function M.get(buffer)
  local client = vim.lsp.get_clients({ bufnr = buffer or 0, name = M.NAME })[1]
  if client and client.initialized and not client:is_stopped() then
    return client
  end
end

--- Return any running client.
function M.any()
  return M.get(0) or vim.lsp.get_clients({ name = M.NAME })[1]
end

-- --- requests -------------------------------------------------------------------------------

--- Most diagnostics sent with a request; the model reads few.
local MOST_DIAGNOSTICS = 200

local function diagnostics(buffer)
  local found = {}
  for _, each in ipairs(vim.diagnostic.get(buffer)) do
    if #found == MOST_DIAGNOSTICS then
      break
    end
    local at = { line = each.lnum, character = each.col }
    found[#found + 1] = {
      range = { start = at, ["end"] = { line = each.end_lnum or each.lnum, character = each.col } },
      severity = each.severity,
      message = each.message,
    }
  end
  return found
end

local function in_snippet()
  local luasnip = package.loaded["luasnip"]
  return vim.snippet.active() or (luasnip ~= nil and luasnip.locally_jumpable(1))
end

local function params_of(client, buffer, invoked, another)
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.textDocument.version = vim.lsp.util.buf_versions[buffer]
  params.context = { triggerKind = invoked and 1 or 2 }
  params.inSnippet = in_snippet()
  params.otherDocuments = true -- a jump may lead to another file
  params.unopenedFiles = true
  params.wholeRenames = true
  params.another = another
  params.diagnostics = diagnostics(buffer)
  if vim.b[buffer].visual_multi then -- vim-visual-multi has several cursors
    params.cursors = 2
  end
  return params
end

--- Cancel the running request.
function M.cancel(method)
  local question = pending[method]
  pending[method] = nil
  if question and not question.client:is_stopped() then
    question.client:cancel_request(question.id)
  end
end

--- Return whether a request of this kind is running.
function M.is_asking(method)
  return pending[method] ~= nil
end

--- Ask about the current buffer and cursor. A newer request of the same kind cancels an older one.
--- Every request that is not superseded ends with `receive(result, client)`, if the buffer has not
--- changed, or with `fail(reason)`. `another`: another next edit than the one shown.
function M.ask(method, invoked, receive, fail, another)
  local buffer = vim.api.nvim_get_current_buf()
  local client = M.get(buffer)
  if not client or vim.b[buffer].redraft_disabled then
    return false
  end
  M.cancel(method)
  local tick = vim.api.nvim_buf_get_changedtick(buffer)
  local sent, id
  sent, id = client:request(method, params_of(client, buffer, invoked, another), function(err, result)
    if not pending[method] or pending[method].id ~= id then
      return -- superseded by a newer request
    end
    pending[method] = nil
    local here = vim.api.nvim_get_current_buf() == buffer
    if err then
      fail(err.message)
    elseif here and vim.api.nvim_buf_get_changedtick(buffer) == tick then
      receive(result, client)
    else
      fail("the text changed before the answer came")
    end
  end, buffer)
  pending[method] = sent and { client = client, id = id } or nil
  return sent
end

--- Ask for what is shown, as a sentence for screen readers, and pass it to `done`.
function M.describe(client, done)
  local buffer = vim.api.nvim_get_current_buf()
  client:request("redraft/describe", params_of(client, buffer, false), function(err, result)
    done(err and err.message or result.text)
  end, buffer)
end

-- --- reports and commands -------------------------------------------------------------------

function M.notify(client, method, params)
  if not client:is_stopped() then
    client:notify(method, params)
  end
end

--- Run a command of the server; `done(result, err)` is optional.
function M.command(client, name, arguments, done)
  if client:is_stopped() then
    return
  end
  local params = { command = name, arguments = arguments }
  client:request("workspace/executeCommand", params, function(err, result)
    if done then
      done(result, err)
    end
  end)
end

--- Report that an item was accepted in full, by its command.
function M.accepted(client, item)
  if item.command then
    M.command(client, item.command.command, item.command.arguments)
  end
end

--- Report "redraft.reject" or "redraft.ignore" on an item.
function M.turned_down(client, item, name)
  if item.command then
    M.command(client, name, item.command.arguments)
  end
end

--- Report the document in focus; nil: the editor lost the focus.
function M.focus(buffer)
  local client = M.get(buffer or 0)
  if client then
    local document = buffer and { textDocument = { uri = vim.uri_from_bufnr(buffer) } }
    M.notify(client, "textDocument/didFocus", document or vim.empty_dict())
  end
end

-- --- settings -------------------------------------------------------------------------------

--- Settings sent to the server: those of the user, changed by commands.
function M.settings()
  local config = vim.lsp.config[M.NAME] or {}
  local client = M.any()
  local now = client and client.settings or config.settings or {}
  return vim.tbl_deep_extend("force", config.init_options or {}, now.redraft or {})
end

--- Set one setting of the server for this session, in every running client.
function M.set(name, value)
  local changed = M.settings()
  changed[name] = value
  vim.lsp.config(M.NAME, { settings = { redraft = changed } }) -- for clients that start later
  for _, client in ipairs(vim.lsp.get_clients({ name = M.NAME })) do
    client.settings = vim.tbl_extend("force", client.settings or {}, { redraft = changed })
    M.notify(client, "workspace/didChangeConfiguration", { settings = { redraft = changed } })
  end
end

return M
