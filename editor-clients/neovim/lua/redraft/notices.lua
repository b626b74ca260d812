-- What is said without being asked, for people without a status line: once that Redraft is on, that a
-- model is on its way, that it is there, and what went wrong. Each of them one short line.
local config = require("redraft.config")
local text = require("redraft.text")

local M = {}

--- A wait is worth a word if it is not over by then.
M.patience_ms = 3000

local function say(message, level)
  vim.notify(text.fit("Redraft: " .. message), level or vim.log.levels.INFO)
end

-- --- the first time -------------------------------------------------------------------------

--- What is said once on a machine; short enough not to ask for a key on 80 columns.
M.GREETING = "on. Tab takes what is grey; :Redraft why, :help redraft"

--- Say so the first time that a server is there. The note that it was said is in Neovim's own state.
function M.greet()
  if not config.values.notices then
    return
  end
  local folder = vim.fs.joinpath(vim.fn.stdpath("state"), "redraft")
  local note = vim.fs.joinpath(folder, "greeted")
  if vim.uv.fs_stat(note) or vim.fn.mkdir(folder, "p") == 0 then
    return
  end
  vim.fn.writefile({}, note)
  say(M.GREETING)
end

-- --- what stands in the way -------------------------------------------------------------------

local timer = vim.uv.new_timer()
--- What was said last of what stands in the way, without its numbers: every per cent is no news.
local said = nil

local function told_of(state)
  local key = state.message:gsub("%d+", "")
  if key ~= said then
    said = key
    say(state.message, vim.log.levels[state.kind == "Error" and "ERROR" or "WARN"])
  end
end

--- The server's status changed.
function M.told(state)
  if not config.values.notices then
    return
  end
  if state.kind == "Error" then
    timer:stop()
    told_of(state)
  elseif state.kind == "Warning" then
    if not timer:is_active() then
      timer:start(M.patience_ms, 0, vim.schedule_wrap(function()
        local now = require("redraft.status").state
        if now.kind == "Warning" then
          told_of(now)
        end
      end))
    end
  else
    timer:stop()
    if said and state.kind == "Normal" and vim.startswith(state.message, "ready") then
      said = nil
      say(state.message)
    end
  end
end

return M
