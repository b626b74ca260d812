-- Configuration of the language server, found by vim.lsp.enable("redraft"). Neovim 0.11 or later.
-- Extend it with vim.lsp.config("redraft", { init_options = { … } }): the server owns all defaults.
return {
  cmd = { "redraft", "lsp" },
  root_markers = { "tour1_parameter.py", ".git" }, -- the tour is a workspace
  workspace_required = false,
  before_init = function()
    require("redraft.status").starting()
  end,
  handlers = {
    didChangeStatus = function(_, status)
      require("redraft.status").update(status)
    end,
  },
  on_exit = function(code, signal, id)
    require("redraft.server").ended(id, code, signal)
  end,
}
