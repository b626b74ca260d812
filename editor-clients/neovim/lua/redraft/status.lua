-- The last status of the server, for a status line and for `:Redraft why`.
local config = require("redraft.config")
local text = require("redraft.text")

local M = {}

--- From `didChangeStatus`: { busy, kind = "Normal" | "Warning" | "Error" | "Inactive", message,
--- revealable }. `revealable` is true if a gesture would show a hidden suggestion.
M.state = { busy = false, kind = "Normal", message = "", revealable = false }

--- Announce a change of the status, so that status lines are drawn again.
function M.announce()
  vim.api.nvim_exec_autocmds("User", { pattern = "RedraftStatus", modeline = false })
  vim.cmd.redrawstatus()
end

local function set(status)
  M.state = {
    busy = status.busy == true,
    kind = status.kind or "Normal",
    message = status.message or "",
    revealable = status.revealable == true,
    starting = status.starting == true,
  }
  M.announce()
end

--- Set the status from the server.
function M.update(status)
  set(status)
  require("redraft.notices").update(M.state)
  if status.larger then
    require("redraft.notices").offer(status.larger)
  end
end

--- Set a status that only this side knows: no server, ended, restarting.
function M.say(message, kind)
  set({ message = message, kind = kind or "Warning" })
end

--- Say that the server starts, until it is `attached` to a buffer.
function M.starting()
  set({ message = "the server is starting", starting = true })
end

function M.attached()
  if M.state.starting then
    set({})
  end
end

local WORDS = { Warning = "waiting", Error = "error", Inactive = "paused" }

--- Return idle, thinking, starting, waiting, paused, error or off.
function M.word()
  if M.state.starting then
    return "starting"
  end
  if not require("redraft.client").get() then
    return M.state.kind == "Normal" and "off" or WORDS[M.state.kind]
  end
  if vim.b.redraft_disabled then
    return "off"
  end
  return M.state.busy and "thinking" or WORDS[M.state.kind] or "idle"
end

--- Describe the visible suggestion, or return nil.
local function shown()
  local showing = require("redraft").showing()
  if showing == "edit" then
    return "next edit shown"
  end
  return showing and "ghost text shown"
end

--- Return the reason that holds for both kinds of suggestion, if there is one.
local function for_both()
  if vim.b.redraft_disabled then
    return "switched off in this buffer (:Redraft enable here)"
  end
  local alone = require("redraft.buffers").why(vim.api.nvim_get_current_buf())
  if alone then
    return "No suggestions: " .. alone
  end
  if M.word() == "off" then
    return "no server is attached to this buffer; :checkhealth redraft tells more"
  end
  return (M.state.kind ~= "Normal" or M.state.starting) and M.state.message or nil
end

--- Return the readable name of a key: `<M-\\>` is Alt-\.
local function key_name(key)
  local name = key:gsub("^<(.*)>$", "%1")
  return (name:gsub("^[MmAa]%-", "Alt-"):gsub("^[Cc]%-", "Ctrl-"):gsub("[Bb]slash$", "\\"))
end

--- Return the reason of an answer, with the key that shows a hidden suggestion.
local function with_key(found)
  if not (found and found.revealable) then
    return found and found.reason
  end
  local ask = config.values.keys.ask
  local key = ask and key_name(ask) or ":Redraft trigger"
  return ("%s %s shows it."):format(found.reason, key)
end

--- Return a sentence about the visible suggestion, or why there is none: in insert mode about ghost
--- text first, otherwise about the next edit.
function M.why()
  local known = for_both() or shown()
  if known then
    return known
  end
  local answers = require("redraft.answers")
  local ghost, edit = answers.reason("text"), answers.reason("edit")
  if vim.fn.mode():sub(1, 1) == "i" then
    ghost, edit = edit, ghost
  end
  if not (ghost or edit) and require("redraft.events").is_asking() then
    return "thinking"
  end
  return with_key(edit or ghost or { reason = M.state.message, revealable = M.state.revealable })
end

--- Return the details as lines: one about ghost text, one about the next edit.
function M.explanation()
  local common = for_both() or shown()
  if common then
    return { common }
  end
  local answers = require("redraft.answers")
  return {
    with_key(answers.reason("text")) or "Ghost text: nothing was asked here yet; it comes while you type.",
    with_key(answers.reason("edit")) or "Next edit: nothing was asked here yet.",
  }
end

--- Columns of the status line that are kept for other content.
local REST_OF_LINE = 22

--- Return the state and the reason, for 'statusline'.
function M.line()
  local word = M.word()
  if word == "thinking" then
    return "Redraft …"
  elseif word == "off" and not vim.b.redraft_disabled then
    return "Redraft off" -- in lists of files and terminals
  end
  local why = shown() and "" or M.why()
  if vim.list_contains({ "", "idle", "thinking" }, why) or vim.startswith(why, "ready") then
    return word == "idle" and "Redraft" or "Redraft " .. word
  end
  why = text.brief(why, vim.o.columns - REST_OF_LINE):gsub("%%", "%%%%")
  if word == "idle" or word == "starting" then
    return "Redraft: " .. why
  end
  return ("Redraft %s: %s"):format(word, (why:gsub("^No suggestions: ", "")))
end

return M
