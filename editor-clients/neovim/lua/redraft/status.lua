-- What the server last said about itself, for a status line and for `:Redraft why`.
local config = require("redraft.config")
local text = require("redraft.text")

local M = {}

--- As told by `didChangeStatus`: { busy, kind = "Normal" | "Warning" | "Error" | "Inactive", message,
--- revealable }; the last one says whether a gesture would show what is hidden.
M.state = { busy = false, kind = "Normal", message = "", revealable = false }

--- Say that the status, or a reason in it, changed: a status line may want to be drawn again.
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
  }
  M.announce()
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

--- Return the name of a key as people write it: `<M-\\>` is Alt-\.
local function key_name(key)
  local name = key:gsub("^<(.*)>$", "%1")
  return (name:gsub("^[MmAa]%-", "Alt-"):gsub("^[Cc]%-", "Ctrl-"):gsub("[Bb]slash$", "\\"))
end

--- Return an answer's reason, with the key that shows what is hidden.
local function with_key(found)
  if not (found and found.revealable) then
    return found and found.reason
  end
  local ask = config.values.keys.ask
  local key = ask and key_name(ask) or ":Redraft trigger"
  return ("%s %s shows it."):format(found.reason, key)
end

--- Return one sentence on why nothing is shown, or on what is: about ghost text in insert mode, else
--- about the next edit, where there is a choice.
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

--- Return the same for a person who asks, as lines: one on ghost text, one on the next edit.
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

--- Columns of the screen that a status line has for other things than the reason.
local REST_OF_LINE = 22

--- Return the state and the reason, for 'statusline'.
function M.line()
  local word = M.word()
  if word == "thinking" then
    return "Redraft …"
  elseif word == "off" and not vim.b.redraft_disabled then
    return "Redraft off" -- in a list of files, a terminal: not worth a sentence
  end
  local why = shown() and "" or M.why()
  if vim.list_contains({ "", "idle", "thinking" }, why) or vim.startswith(why, "ready") then
    return word == "idle" and "Redraft" or "Redraft " .. word
  end
  why = text.brief(why, vim.o.columns - REST_OF_LINE):gsub("%%", "%%%%")
  if word == "idle" then
    return "Redraft: " .. why
  end
  return ("Redraft %s: %s"):format(word, (why:gsub("^No suggestions: ", "")))
end

return M
