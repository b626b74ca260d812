-- What the server last said about itself, for a status line and for `:Redraft why`.
local fit = require("redraft.text").fit

local M = {}

--- As told by `didChangeStatus`: { busy, kind = "Normal" | "Warning" | "Error" | "Inactive", message }
M.state = { busy = false, kind = "Normal", message = "" }

--- Called after each change: a status line may want to be drawn again.
local function announce()
  vim.api.nvim_exec_autocmds("User", { pattern = "RedraftStatus", modeline = false })
  vim.cmd.redrawstatus()
end

local function set(status)
  M.state = {
    busy = status.busy == true,
    kind = status.kind or "Normal",
    message = status.message or "",
  }
  announce()
end

--- What the server says.
function M.told(status)
  set(status)
  require("redraft.notices").told(M.state)
end

--- What only this side can know: there is no server, it ended, it is being started again.
function M.say(message, kind)
  set({ message = message, kind = kind or "Warning" })
end

local APART = "next edit: %s · ghost text: %s"
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

--- What is shown, in words, or nil.
local function shown()
  local showing = require("redraft").showing()
  if showing == "edit" then
    return "next edit shown"
  end
  return showing and "ghost text shown"
end

--- One sentence for both kinds of suggestion, where there is one: no server, switched off, no model.
local function for_both()
  if vim.b.redraft_disabled then
    return "switched off in this buffer (:Redraft enable here)"
  end
  if M.word() == "off" then
    return "no server is attached to this buffer; :checkhealth redraft tells more"
  end
  return M.state.kind ~= "Normal" and M.state.message or nil
end

--- One sentence on why nothing is shown, or on what is.
function M.why()
  local text, edit = require("redraft.answers").reasons()
  local known = for_both() or shown()
  if known or not (text or edit) then
    return known or (require("redraft.events").is_asking() and "thinking" or M.state.message)
  elseif not (text and edit) or text == edit then
    return edit or text
  end
  return APART:format(edit, text)
end

--- The same for a person who asks, who is told what each sentence is about; `room`: in so many columns,
--- of which both get their part.
function M.explanation(room)
  local common = for_both() or shown()
  if common then
    return room and fit(common, room) or common
  end
  local text, edit = require("redraft.answers").reasons()
  if room and edit and not text then
    return fit("next edit: " .. edit, room)
  end
  text, edit = text or "comes while you type", edit or "not asked for yet"
  if room then
    local left = room - #APART:format("", "")
    local half = math.floor(left / 2)
    text = fit(text, math.max(half, left - #edit))
    edit = fit(edit, left - vim.fn.strdisplaywidth(text))
  end
  return APART:format(edit, text)
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
