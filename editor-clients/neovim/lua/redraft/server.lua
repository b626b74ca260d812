-- Start and restart of the server.
local client = require("redraft.client")
local status = require("redraft.status")

local M = {}

--- Times of recent unexpected ends, in seconds of `vim.uv.now()`.
local ends = {}
--- A server that ends this often within ENOUGH_S is not restarted.
local MOST_ENDS, ENOUGH_S = 4, 180
--- Clients that were stopped, by id.
local stopping = {}

--- Report once why there is no server, if the reason is clear. Return whether it was reported now.
function M.explain()
  local config = vim.lsp.config[client.NAME]
  local command = config and config.cmd
  if type(command) ~= "table" or vim.fn.executable(command[1]) == 1 then
    return false
  end
  local message = ("%s is not on the PATH; see :checkhealth redraft"):format(command[1])
  if status.state.message ~= message then
    status.say(message)
    vim.notify("Redraft: " .. message, vim.log.levels.WARN)
    return true
  end
  return false
end

-- --- a placeholder --------------------------------------------------------------------------

local HOLDER = "redraft (starting)"

--- A server in this process without any abilities.
local function holder(dispatchers)
  local closing = false
  local function close()
    if not closing then
      closing = true
      dispatchers.on_exit(0, 0)
    end
  end
  return {
    request = function(method, _, answer)
      answer(nil, method == "initialize" and { capabilities = {} } or nil)
      return true, 1
    end,
    notify = function(method)
      if method == "exit" then
        close()
      end
      return true
    end,
    is_closing = function()
      return closing
    end,
    terminate = close,
  }
end

--- Neovim 0.11 stops tracking a buffer that changes without an attached client, so that a later client
--- receives no changes. A placeholder is attached until the real client is.
function M.hold(buffers)
  for _, buffer in ipairs(buffers) do
    if vim.api.nvim_buf_is_loaded(buffer) then
      vim.lsp.start({ name = HOLDER, cmd = holder }, { bufnr = buffer })
    end
  end
end

--- Detach the placeholder when the real client is attached to a buffer.
function M.attached(buffer)
  for _, each in ipairs(vim.lsp.get_clients({ name = HOLDER, bufnr = buffer })) do
    vim.lsp.buf_detach_client(buffer, each.id)
    if vim.tbl_isempty(each.attached_buffers) then
      each:stop(true)
    end
  end
end

local function start_again(config, buffers)
  for _, buffer in ipairs(buffers) do
    if vim.api.nvim_buf_is_loaded(buffer) then
      vim.lsp.start(config, { bufnr = buffer })
    end
  end
end

--- Restart a server that ended unexpectedly, with growing pauses and a limit.
local function revive(config, buffers, what)
  local now = vim.uv.now() / 1000
  ends = vim.tbl_filter(function(at)
    return now - at < ENOUGH_S
  end, ends)
  ends[#ends + 1] = now
  local times = #ends
  vim.api.nvim_exec_autocmds("User", { pattern = "RedraftEnded", modeline = false })
  if times >= MOST_ENDS then
    vim.notify("Redraft: the server keeps ending, see :Redraft log", vim.log.levels.ERROR)
    local message = "%s, %d times; see :Redraft log, then :Redraft restart"
    return status.say(message:format(what, times), "Error")
  end
  status.say(what .. "; starting it again")
  vim.defer_fn(function()
    start_again(config, buffers)
  end, 250 * 4 ^ (times - 1))
end

--- Hide Neovim's own message about the end of a client: it is longer than a line, so Neovim would wait
--- for a key. The status and the log have the same information.
local function hush()
  local notify = vim.notify
  local function but_this(message, ...)
    if not vim.startswith(tostring(message), "Client " .. client.NAME .. " quit with exit code") then
      return notify(message, ...)
    end
  end
  vim.notify = but_this
  vim.schedule(function() -- by then it was shown
    vim.notify = vim.notify == but_this and notify or vim.notify
  end)
end

--- Handle the end of a client. Most functions of Neovim must not be called here.
function M.ended(id, code, signal)
  local ended = vim.lsp.get_client_by_id(id)
  local on_purpose = stopping[id] or not ended or ended._is_stopping
  stopping[id] = nil
  if on_purpose then
    return
  end
  local buffers, config = vim.tbl_keys(ended.attached_buffers), ended.config
  vim.schedule(function()
    hush()
    if vim.v.exiting == vim.NIL then
      M.hold(buffers)
      revive(config, buffers, ("the server ended (code %d, signal %d)"):format(code, signal))
    end
  end)
end

--- Restart the server for its buffers, or for all buffers.
function M.restart()
  ends = {}
  local clients = vim.lsp.get_clients({ name = client.NAME })
  if #clients == 0 then
    vim.lsp.enable(client.NAME)
  end
  for _, each in ipairs(clients) do
    local buffers, config = vim.tbl_keys(each.attached_buffers), each.config
    M.hold(buffers)
    if #buffers > 0 then
      status.starting()
    end
    stopping[each.id] = true
    each:stop(true)
    vim.defer_fn(function()
      start_again(config, buffers)
    end, 100)
  end
end

return M
