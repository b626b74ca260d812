-- Runs when the folder is on 'runtimepath': starts the server and draws its suggestions.
if vim.g.loaded_redraft then
  return
end
vim.g.loaded_redraft = true
require("redraft").setup()
