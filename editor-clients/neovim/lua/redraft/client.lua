-- The connection to the language server: questions, reports, commands, settings, starting again.
-- Knows nothing of what is drawn.
local status = require("redraft.status")

local M = {}

M.NAME = "redraft"

--- Questions under way, by method: { client, id }.
local pending = {}
--- When the server ended by itself lately, in seconds of `vim.uv.now()`.
local ends = {}
--- A server that ends this often within ENOUGH_S is left alone.
local MOST_ENDS, ENOUGH_S = 4, 180

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

--- Ask about the current buffer and cursor. A newer question of the kind cancels the older one;
--- `receive(result, client)` hears of an answer only while the buffer is as it was.
function M.ask(method, invoked, receive)
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
    if not err and here and vim.api.nvim_buf_get_changedtick(buffer) == tick then
      receive(result, client)
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

-- --- starting and ending --------------------------------------------------------------------

--- Say once, in the status, why there is no server, where that is plain.
function M.explain()
  local config = vim.lsp.config[M.NAME]
  local command = config and config.cmd
  if type(command) ~= "table" or vim.fn.executable(command[1]) == 1 then
    return
  end
  local told = ("%s is not on the PATH; install it, or set cmd with vim.lsp.config"):format(
    command[1]
  )
  if status.state.message ~= told then
    status.say(told)
    vim.notify("Redraft: " .. told, vim.log.levels.WARN)
  end
end

local stopping = {} -- clients ended on purpose, by id

local function start_again(config, buffers)
  for _, buffer in ipairs(buffers) do
    if vim.api.nvim_buf_is_loaded(buffer) then
      vim.lsp.start(config, { bufnr = buffer })
    end
  end
end

--- What ended by itself starts again, later each time, and not for ever.
local function revive(config, buffers, what)
  local now = vim.uv.now() / 1000
  ends = vim.tbl_filter(function(at)
    return now - at < ENOUGH_S
  end, ends)
  ends[#ends + 1] = now
  local times = #ends
  vim.api.nvim_exec_autocmds("User", { pattern = "RedraftEnded", modeline = false })
  if times >= MOST_ENDS then
    local told = "%s, %d times; see :Redraft log, then :Redraft restart"
    return status.say(told:format(what, times), "Error")
  end
  status.say(what .. "; starting it again")
  vim.defer_fn(function()
    start_again(config, buffers)
  end, 250 * 4 ^ (times - 1))
end

--- A client ended; called where most of Neovim's functions may not be.
function M.ended(id, code, signal)
  local client = vim.lsp.get_client_by_id(id)
  local on_purpose = stopping[id] or not client or client._is_stopping
  stopping[id] = nil
  if on_purpose then
    return
  end
  local buffers, config = vim.tbl_keys(client.attached_buffers), client.config
  vim.schedule(function()
    if vim.v.exiting == vim.NIL then
      revive(config, buffers, ("the server ended (code %d, signal %d)"):format(code, signal))
    end
  end)
end

--- Stop the server and start it for the buffers it had, or for all where there is none.
function M.restart()
  ends = {}
  local clients = vim.lsp.get_clients({ name = M.NAME })
  if #clients == 0 then
    vim.lsp.enable(M.NAME)
  end
  for _, client in ipairs(clients) do
    local buffers, config = vim.tbl_keys(client.attached_buffers), client.config
    stopping[client.id] = true
    client:stop(true)
    vim.defer_fn(function()
      start_again(config, buffers)
    end, 100)
  end
end

return M
