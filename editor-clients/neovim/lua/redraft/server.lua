-- The server's life: said once where there is none, started again where it ended by itself.
-- Knows nothing of what it answers.
local client = require("redraft.client")
local status = require("redraft.status")

local M = {}

--- When the server ended by itself lately, in seconds of `vim.uv.now()`.
local ends = {}
--- A server that ends this often within ENOUGH_S is left alone.
local MOST_ENDS, ENOUGH_S = 4, 180
--- Clients ended on purpose, by id.
local stopping = {}

--- Say once, in the status, why there is no server, where that is plain. True where it was said now.
function M.explain()
  local config = vim.lsp.config[client.NAME]
  local command = config and config.cmd
  if type(command) ~= "table" or vim.fn.executable(command[1]) == 1 then
    return false
  end
  local told = ("%s is not on the PATH; see :checkhealth redraft"):format(command[1])
  if status.state.message ~= told then
    status.say(told)
    vim.notify("Redraft: " .. told, vim.log.levels.WARN)
    return true
  end
  return false
end

-- --- holding the place ----------------------------------------------------------------------

local HOLDER = "redraft (starting)"

--- A server within this process that knows nothing.
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

--- Neovim (0.11) stops watching a buffer that changes while no client is attached to it, and a client
--- that comes later hears of no change. So something is attached until it does.
local function hold(buffers)
  for _, buffer in ipairs(buffers) do
    if vim.api.nvim_buf_is_loaded(buffer) then
      vim.lsp.start({ name = HOLDER, cmd = holder }, { bufnr = buffer })
    end
  end
end

--- Called when a real client is attached to a buffer.
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
    vim.notify("Redraft: the server keeps ending, see :Redraft log", vim.log.levels.ERROR)
    local told = "%s, %d times; see :Redraft log, then :Redraft restart"
    return status.say(told:format(what, times), "Error")
  end
  status.say(what .. "; starting it again")
  vim.defer_fn(function()
    start_again(config, buffers)
  end, 250 * 4 ^ (times - 1))
end

--- Neovim itself says that a client quit, in a message too long for one line: it would wait for a
--- key and swallow it. The status says the same, and the log more.
local function hush()
  local notify = vim.notify
  local function but_this(message, ...)
    if not vim.startswith(tostring(message), "Client " .. client.NAME .. " quit with exit code") then
      return notify(message, ...)
    end
  end
  vim.notify = but_this
  vim.schedule(function() -- by then it was said
    vim.notify = vim.notify == but_this and notify or vim.notify
  end)
end

--- A client ended; called where most of Neovim's functions may not be.
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
      hold(buffers)
      revive(config, buffers, ("the server ended (code %d, signal %d)"):format(code, signal))
    end
  end)
end

--- Stop the server and start it for the buffers it had, or for all where there is none.
function M.restart()
  ends = {}
  local clients = vim.lsp.get_clients({ name = client.NAME })
  if #clients == 0 then
    vim.lsp.enable(client.NAME)
  end
  for _, each in ipairs(clients) do
    local buffers, config = vim.tbl_keys(each.attached_buffers), each.config
    hold(buffers)
    stopping[each.id] = true
    each:stop(true)
    vim.defer_fn(function()
      start_again(config, buffers)
    end, 100)
  end
end

return M
