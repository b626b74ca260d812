-- `:Redraft …`: subcommands and their completion. Settings are sent to the server.
local client = require("redraft.client")
local config = require("redraft.config")
local status = require("redraft.status")

local M = {}

--- Show `lines` in a window at the cursor until it moves. A message longer than a line would wait for
--- Enter. Screen readers would say a border.
local function float(lines, border)
  local widest = 0
  for _, line in ipairs(lines) do
    widest = math.max(widest, vim.fn.strdisplaywidth(line))
  end
  local width = math.max(1, math.min(widest, vim.o.columns - 4))
  local _, window = vim.lsp.util.open_floating_preview(lines, "", {
    border = border or "single",
    title = not border and " Redraft " or nil,
    wrap = true,
    width = width,
    focus_id = "redraft",
  })
  vim.wo[window].linebreak = true -- screen readers say the halves of a word
  vim.api.nvim_win_set_height(window, vim.api.nvim_win_text_height(window, {}).all)
end

--- Show `message`, a string or lines, in the message line if it fits.
local function say(message, level)
  local lines = type(message) == "table" and message or vim.split(message, "\n")
  local line = "Redraft: " .. table.concat(lines, " ")
  if #lines <= 2 and vim.fn.strdisplaywidth(line) <= vim.v.echospace then
    vim.notify(line, level or vim.log.levels.INFO)
  else
    float(lines)
  end
end

local function complain(message)
  say(message, vim.log.levels.ERROR)
end

--- Run a command of the server and pass its answer on, or say why there is none.
local function ask_server(name, arguments, done)
  local running = client.any()
  if not running then
    if status.state.starting then
      return say(status.why())
    end
    require("redraft.server").explain()
    return complain("no server is running; :checkhealth redraft tells more")
  end
  client.command(running, name, arguments, function(result, err)
    if err then
      return complain(err.message)
    end
    done(result)
  end)
end

local function one_of(word, words, what)
  if vim.list_contains(words, word) then
    return true
  end
  complain(("%s is one of %s, not %q"):format(what, table.concat(words, ", "), word or ""))
  return false
end

-- --- on and off -----------------------------------------------------------------------------

local function switch_language(language, on)
  local disabled = vim.tbl_filter(function(each)
    return each ~= language
  end, client.settings().disabledLanguages or {})
  if not on then
    disabled[#disabled + 1] = language
  end
  client.set("disabledLanguages", disabled)
  say(("%s for %s"):format(on and "on" or "off", language))
end

--- `enable` and `disable`: everywhere, `here` (this buffer), `language [name]`.
local function switch(words, on)
  local where = words[1]
  if not on then
    require("redraft.events").clear()
  end
  if where == nil then
    client.set("enabled", on)
    vim.b.redraft_disabled = nil
    say(on and "on" or "off")
  elseif where == "here" then
    vim.b.redraft_disabled = not on or nil
    say(on and "on in this buffer" or "off in this buffer")
  elseif one_of(where, { "here", "language" }, "what follows") then
    local language = words[2] or vim.bo.filetype
    if language == "" then
      return complain("this buffer has no filetype; name a language")
    end
    switch_language(language, on)
  end
end

-- --- subcommands ----------------------------------------------------------------------------

local LEVELS = { "low", "medium", "high" }
local PAUSES = { "5", "15", "60", "off" }
local RECORDING = { "on", "off", "status" }

local function files_and_languages(words)
  if #words <= 1 then
    return { "here", "language" }
  end
  return words[1] == "language" and vim.fn.getcompletion("", "filetype") or {}
end

local run, complete = {}, { enable = files_and_languages, disable = files_and_languages }

function run.enable(words)
  switch(words, true)
end

function run.disable(words)
  switch(words, false)
end

function run.eagerness(words)
  if one_of(words[1], LEVELS, "eagerness") then
    client.set("eagerness", words[1])
    say("eagerness is " .. words[1])
  end
end

function complete.eagerness()
  return LEVELS
end

function run.snooze(words)
  local minutes = words[1] == "off" and 0 or tonumber(words[1] or PAUSES[1])
  if not (minutes and minutes >= 0 and minutes < math.huge) then
    return complain(("snooze takes minutes or off, not %q"):format(words[1]))
  end
  require("redraft.events").clear()
  ask_server("redraft.snooze", { minutes }, function(result)
    local left = math.ceil(result.snoozedS / 60)
    say(left > 0 and ("quiet for %d min"):format(left) or "no longer quiet")
  end)
end

function complete.snooze()
  return PAUSES
end

function run.subtle(words)
  local wanted = words[1] == nil and not config.values.subtle or words[1] == "on"
  if words[1] == nil or one_of(words[1], { "on", "off" }, "subtle") then
    config.values.subtle = wanted
    require("redraft.events").clear()
    say(wanted and "suggestions are hinted at until asked for" or "suggestions are shown")
  end
end

function complete.subtle()
  return { "on", "off" }
end

--- Say in one line why a gesture found nothing. `:Redraft why` gives the details.
function M.nothing_found()
  local why = status.why()
  local room = vim.v.echospace - #"Redraft: "
  vim.notify("Redraft: " .. require("redraft.text").brief(why == "" and status.word() or why, room))
end

function run.why()
  require("redraft.events").when_answered(function()
    say(status.explanation())
  end)
end

--- Write the suggestion as a sentence on the screen, for screen readers: in a window in insert mode, where
--- the name of the mode hides messages.
function run.read()
  local running = client.get()
  if not running then
    return complain("this buffer has no server; :checkhealth redraft tells more")
  end
  require("redraft.events").when_answered(function()
    client.describe(running, function(text)
      if vim.fn.mode():sub(1, 1) == "n" and vim.fn.strdisplaywidth(text) <= vim.v.echospace then
        vim.api.nvim_echo({ { text } }, true, {})
      else
        float({ text }, "none")
      end
    end)
  end)
end

local function sentence(result)
  local model = result.model
  local lines = {
    ("Redraft %s, %s"):format(result.version, status.word()),
    result.message,
    ("model: %s"):format(model.name ~= "" and model.name .. " on " .. model.provider or model.state),
  }
  if result.model.aboutLarger ~= "" then
    lines[#lines + 1] = result.model.aboutLarger
  end
  if result.load.why ~= "" then
    table.insert(lines, 3, ("%s %s"):format(result.load.effort, result.load.why))
  end
  for _, name in ipairs(vim.fn.sort(vim.tbl_keys(result.settings))) do
    if name ~= "secretGlobs" then
      lines[#lines + 1] = ("  %s = %s"):format(name, vim.inspect(result.settings[name]))
    end
  end
  return table.concat(lines, "\n")
end

function run.status()
  if not client.any() then
    require("redraft.server").explain()
    return say(status.word() .. (status.why() ~= "" and ": " .. status.why() or ""))
  end
  ask_server("redraft.status", {}, function(result)
    say(sentence(result))
  end)
end

function run.restart()
  require("redraft.events").clear()
  require("redraft.server").restart()
  say("starting again")
end

function run.log()
  vim.cmd.tabedit(vim.fn.fnameescape(vim.lsp.log.get_filename()))
  vim.cmd("normal! G")
end

function run.record(words)
  if one_of(words[1] or "status", RECORDING, "record") then
    ask_server("redraft.record", { words[1] or "status" }, function(result)
      if result.problem ~= "" then
        return complain(result.problem)
      end
      local where = result.file ~= "" and result.file or result.folder
      say((result.on and "recording to %s" or "not recording; recordings are kept in %s"):format(where))
    end)
  end
end

function complete.record()
  return RECORDING
end

--- Show what became of suggestions, in a window below.
function run.stats(words)
  ask_server("redraft.statistics", { words[1] }, function(result)
    local buffer = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(result.text, "\n"))
    vim.bo[buffer].bufhidden, vim.bo[buffer].modifiable = "wipe", false
    vim.cmd("botright sbuffer " .. buffer)
    vim.wo.wrap = false
  end)
end

function complete.stats()
  return { "7", "14", "30", "90" }
end

--- Copy the tour into a folder, `redraft-tour` where none is named, and open its first file.
function run.tour(words)
  local command = (vim.lsp.config[client.NAME] or {}).cmd
  if type(command) ~= "table" or command[2] ~= "lsp" then
    return complain("run `redraft tour` in a terminal, and open the file that it names")
  end
  local function done(result)
    if result.code ~= 0 then
      return complain(vim.trim(result.stderr))
    end
    vim.cmd.edit(vim.fn.fnameescape(vim.trim(result.stdout)))
  end
  local folder = vim.fn.fnamemodify(words[1] or "redraft-tour", ":p")
  if not require("redraft.server").explain() then
    vim.system({ command[1], "tour", folder }, { text = true }, vim.schedule_wrap(done))
  end
end

function complete.tour(words)
  return vim.fn.getcompletion(words[1], "dir")
end

function run.accept(words)
  if not require("redraft").accept(words[1]) then
    run.why()
  end
end

function complete.accept()
  return { "word", "line" }
end

function run.reject()
  if not require("redraft").reject() then
    run.why()
  end
end

function run.trigger()
  require("redraft").trigger()
end

-- --- the command ----------------------------------------------------------------------------

local function names()
  return vim.fn.sort(vim.tbl_keys(run))
end

local function starting_with(words, start)
  return vim.tbl_filter(function(word)
    return vim.startswith(word, start)
  end, words)
end

--- Complete `line`; `start` is the beginning of its last word.
local function completions(start, line)
  local words = vim.split(vim.trim(line:match("Redraft!?%s+(.*)") or ""), "%s+")
  if #words <= 1 and not line:find("%s%S+%s$") then
    return starting_with(names(), start)
  end
  local more = complete[table.remove(words, 1)]
  if start == "" then
    words[#words + 1] = ""
  end
  return more and starting_with(more(words), start) or {}
end

function M.set()
  vim.api.nvim_create_user_command("Redraft", function(given)
    local words = given.fargs
    local name = table.remove(words, 1) or "status"
    if one_of(name, names(), "a subcommand") then
      run[name](words)
    end
  end, { nargs = "*", complete = completions, desc = "Redraft: local next edits and infill" })
end

return M
