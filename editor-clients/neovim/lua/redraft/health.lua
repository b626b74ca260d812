-- `:checkhealth redraft`: checks of the installation, in the order of their dependence.
local client = require("redraft.client")
local config = require("redraft.config")
local health = vim.health

local M = {}

local function neovim()
  health.start("Neovim")
  if vim.fn.has("nvim-0.11") == 1 then
    health.ok(tostring(vim.version()))
  else
    health.error(("%s is too old"):format(vim.version()), "Install Neovim 0.11 or later")
  end
end

local function program()
  health.start("Server")
  local command = (vim.lsp.config[client.NAME] or {}).cmd
  if type(command) ~= "table" then
    return health.warn("cmd is no list of words", "See :help redraft-server")
  end
  if vim.fn.executable(command[1]) == 0 then
    return health.error(("%s is not on the PATH"):format(command[1]), {
      "Install it in a clone of the repository: pip install '.[cpu]'; then: redraft setup neovim",
      "Or name it: vim.lsp.config('redraft', { cmd = { '/path/to/redraft', 'lsp' } })",
    })
  end
  health.ok(("%s: %s"):format(table.concat(command, " "), vim.fn.exepath(command[1])))
end

--- Return the status of the server, or nil and the reason.
local function answer(running)
  local params = { command = "redraft.status", arguments = {} }
  local response = running:request_sync("workspace/executeCommand", params, 3000, 0)
  if not response then
    return nil, "it does not answer within 3 s"
  end
  return response.result, response.err and ("it answers with an error: %s"):format(response.err.message)
end

local function server()
  local running = client.any()
  if not running and require("redraft.status").state.starting then
    return health.info("the server is starting; look again in a moment")
  end
  if not running then
    local enabled = vim.lsp.is_enabled == nil or vim.lsp.is_enabled(client.NAME)
    return health.warn("no server is running", {
      enabled and "Open a file that has a filetype" or "Call vim.lsp.enable('redraft')",
      "See :Redraft log",
    })
  end
  local buffers = vim.tbl_count(running.attached_buffers)
  health.ok(("running for %d buffer(s), root %s"):format(buffers, running.root_dir or "none"))
  local report, problem = answer(running)
  if not report then
    return health.error(problem, "See :Redraft log, then :Redraft restart")
  end
  local model = report.model
  if model.state == "ready" then
    health.ok(("model %s on %s"):format(model.name, model.provider))
  else
    local say = model.state == "failed" and health.error or health.warn
    say(("the model is %s"):format(model.state), model.message ~= "" and model.message or nil)
  end
  health.info(("last status: %s"):format(report.message))
  for _, name in ipairs({ "enabled", "eagerness", "nextEdits", "disabledLanguages" }) do
    health.info(("%s = %s"):format(name, vim.inspect(report.settings[name])))
  end
end

local function keys()
  health.start("Keys")
  for name, key in vim.spairs(config.values.keys) do
    if key then
      local mode = name == "escape" and "n" or "i"
      local found = vim.fn.maparg(key, mode, false, true)
      if (found.desc or ""):find("^Redraft") then
        health.ok(("%s is %s"):format(key, name))
      else
        local whose = found.desc or found.rhs or "nothing"
        local advice = "Map it again after that plugin, or choose another key: :help redraft-keys"
        health.warn(("%s should be %s and is mapped to %s"):format(key, name, whose), advice)
      end
    end
  end
end

function M.check()
  neovim()
  program()
  server()
  keys()
end

return M
