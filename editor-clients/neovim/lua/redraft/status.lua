-- What the server last said about itself, for a status line and for `:Redraft why`.
local M = {}

--- As told by `didChangeStatus`: { busy, kind = "Normal" | "Warning" | "Error" | "Inactive", message }
M.state = { busy = false, kind = "Normal", message = "" }

--- Called after each change: a status line may want to be drawn again.
local function announce()
  vim.api.nvim_exec_autocmds("User", { pattern = "RedraftStatus", modeline = false })
  vim.cmd.redrawstatus()
end

function M.told(status)
  M.state = {
    busy = status.busy == true,
    kind = status.kind or "Normal",
    message = status.message or "",
  }
  announce()
end

--- What only this side can know: there is no server, it ended, it is being started again.
function M.say(message, kind)
  M.told({ message = message, kind = kind or "Warning" })
end

local WORDS = { Warning = "waiting", Error = "error", Inactive = "paused" }

--- idle | thinking | waiting | paused | error | off
function M.word()
  if not require("redraft.client").get() then
    return M.state.kind == "Normal" and "off" or WORDS[M.state.kind]
  end
  if vim.b.redraft_disabled then
    return "off"
  end
  return M.state.busy and "thinking" or WORDS[M.state.kind] or "idle"
end

--- One sentence on why nothing is shown, or on what is.
function M.why()
  if vim.b.redraft_disabled then
    return "switched off in this buffer (:Redraft enable here)"
  end
  if M.word() == "off" then
    return "no server is attached to this buffer; :checkhealth redraft tells more"
  end
  return M.state.message
end

--- For 'statusline': the state, and the reason where it is longer than a keystroke.
function M.line()
  local word = M.word()
  if word == "idle" or word == "thinking" then
    return word == "idle" and "Redraft" or "Redraft …"
  elseif word == "off" and not vim.b.redraft_disabled then
    return "Redraft off" -- in a list of files, a terminal: not worth a sentence
  end
  local why = M.why():gsub("%%", "%%%%")
  return why == "" and "Redraft " .. word or ("Redraft %s: %s"):format(word, why)
end

return M
