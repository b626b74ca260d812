-- The connection to the language server: questions, reports, commands, settings.
-- Knows nothing of what is drawn.
local M = {}

M.NAME = "redraft"

--- Questions under way, by method: { client, id }.
local pending = {}

--- The client of a buffer (0: the current one) that can be asked, or nil.
function M.get(buffer)
  local client = vim.lsp.get_clients({ bufnr = buffer or 0, name = M.NAME })[1]
  if client and client.initialized and not client:is_stopped() then
    return client
  end
end

--- Any running client, whatever it is attached to.
function M.any()
  return M.get(0) or vim.lsp.get_clients({ name = M.NAME })[1]
end

-- --- questions ------------------------------------------------------------------------------

--- Diagnostics are read by line, severity and message; hundreds of them say no more than these.
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

local function params_of(client, buffer, invoked)
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.textDocument.version = vim.lsp.util.buf_versions[buffer]
  params.context = { triggerKind = invoked and 1 or 2 }
  params.inSnippet = in_snippet()
  params.otherDocuments = true -- a jump may lead to another file
  params.diagnostics = diagnostics(buffer)
  if vim.b[buffer].visual_multi then -- vim-visual-multi: as many as it likes, more than one
    params.cursors = 2
  end
  return params
end

--- Take back the question under way.
function M.cancel(method)
  local question = pending[method]
  pending[method] = nil
  if question and not question.client:is_stopped() then
    question.client:cancel_request(question.id)
  end
end

--- Is a question of this kind under way?
function M.is_asking(method)
  return pending[method] ~= nil
end

--- Ask about the current buffer and cursor. A newer question of the kind cancels the older one;
--- `receive(result, client)` hears of an answer only while the buffer is as it was, `fail(reason)`
--- where there is none: each question that no newer one overtook ends in one of the two.
function M.ask(method, invoked, receive, fail)
  local buffer = vim.api.nvim_get_current_buf()
  local client = M.get(buffer)
  if not client or vim.b[buffer].redraft_disabled then
    return false
  end
  M.cancel(method)
  local tick = vim.api.nvim_buf_get_changedtick(buffer)
  local sent, id
  sent, id = client:request(method, params_of(client, buffer, invoked), function(err, result)
    if not pending[method] or pending[method].id ~= id then
      return -- a newer question is under way
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

-- --- reports and commands -------------------------------------------------------------------

function M.notify(client, method, params)
  if not client:is_stopped() then
    client:notify(method, params)
  end
end

--- Run a command of the server; `done(result, err)` may be left out.
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

--- Report on an item that came with a command: accepted in full.
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

--- Say which document is looked at; nil: the editor was left.
function M.focus(buffer)
  local client = M.get(buffer or 0)
  if client then
    local document = buffer and { textDocument = { uri = vim.uri_from_bufnr(buffer) } }
    M.notify(client, "textDocument/didFocus", document or vim.empty_dict())
  end
end

-- --- settings -------------------------------------------------------------------------------

--- What this session has told the server: what the user configured, and what commands changed.
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
  vim.lsp.config(M.NAME, { settings = { redraft = changed } }) -- for those that start later
  for _, client in ipairs(vim.lsp.get_clients({ name = M.NAME })) do
    client.settings = vim.tbl_extend("force", client.settings or {}, { redraft = changed })
    M.notify(client, "workspace/didChangeConfiguration", { settings = { redraft = changed } })
  end
end

return M
