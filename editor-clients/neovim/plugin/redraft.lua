-- Runs when the folder is on 'runtimepath': starts the server and draws its suggestions.
if vim.g.loaded_redraft then
  return
end
vim.g.loaded_redraft = true
if vim.fn.has("nvim-0.11") == 0 then
  vim.notify("Redraft needs Neovim 0.11 or later", vim.log.levels.ERROR)
  return
end
require("redraft").setup(vim.g.redraft)
vim.lsp.enable("redraft")
if vim.v.vim_did_enter == 1 then -- loaded late, by a plugin manager
  require("redraft.server").explain()
else
  vim.api.nvim_create_autocmd("VimEnter", {
    callback = function()
      require("redraft.server").explain()
    end,
  })
end
