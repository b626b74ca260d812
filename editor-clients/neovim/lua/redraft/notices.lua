-- Short messages for users without a status line: that Redraft is on (once), that a model loads or is
-- ready, and errors.
local config = require("redraft.config")
local text = require("redraft.text")

local M = {}

--- Time after which a wait is reported, ms.
M.patience_ms = 3000

local function say(message, level)
  vim.notify(text.fit("Redraft: " .. message), level or vim.log.levels.INFO)
end

-- --- the first time -------------------------------------------------------------------------

--- The message of the first start; it fits in 80 columns, so that Neovim does not wait for a key.
M.GREETING = "on. Tab takes a suggestion; :Redraft why, :help redraft"

--- Show a message once; return true if it is shown. The file `name` in Neovim's state folder remembers it.
local function say_once(name, message)
  if not config.values.notices then
    return false
  end
  local folder = vim.fs.joinpath(vim.fn.stdpath("state"), "redraft")
  local note = vim.fs.joinpath(folder, name)
  if vim.uv.fs_stat(note) or vim.fn.mkdir(folder, "p") == 0 then
    return false
  end
  vim.fn.writefile({}, note)
  say(message)
  return true
end

local greeted = false

--- Show the first message once.
function M.greet()
  greeted = say_once("greeted", M.GREETING)
end

--- Say once that a larger model suits this machine; :Redraft status gives its costs and the commands.
--- Not after the first message: for two, Neovim would wait for a key.
function M.offer(larger)
  if not greeted then
    say_once("offered-" .. larger.name, larger.name .. " suits this machine; see :Redraft status")
  end
end

-- --- problems --------------------------------------------------------------------------------

local timer = vim.uv.new_timer()
--- The last problem reported, without numbers and brackets, so that progress is not repeated.
local last_problem = nil

local function report_once(state)
  local key = state.message:gsub(" %b()", ""):gsub("%d+", "")
  if key ~= last_problem then
    last_problem = key
    say(state.message, vim.log.levels[state.kind == "Error" and "ERROR" or "WARN"])
  end
end

--- Handle a change of the status.
function M.update(state)
  if not config.values.notices then
    return
  end
  if state.kind == "Error" then
    timer:stop()
    report_once(state)
  elseif state.kind == "Warning" then
    if not timer:is_active() then
      timer:start(M.patience_ms, 0, vim.schedule_wrap(function()
        local now = require("redraft.status").state
        if now.kind == "Warning" then
          report_once(now)
        end
      end))
    end
  else
    timer:stop()
    if last_problem and state.kind == "Normal" and vim.startswith(state.message, "ready") then
      last_problem = nil
      say(state.message)
    end
  end
end

return M
