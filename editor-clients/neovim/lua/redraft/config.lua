-- Options for drawing and keys. All others are settings of the server, with its defaults: see
-- `redraft.client`.
local M = {}

--- `false` instead of a key leaves the key unmapped.
M.defaults = {
  keys = {
    accept = "<Tab>", -- go to the edit, then accept it; without a suggestion, its previous mapping
    accept_always = "<M-l>", -- the same where Tab is used: in a menu, a snippet, an indent
    accept_word = "<M-Right>",
    accept_line = "<M-C-Right>",
    reject = "<C-]>", -- in insert mode
    escape = "<Esc>", -- in normal mode; in insert mode it leaves that mode
    ask = "<M-\\>", -- ask now
    another = "<M-]>", -- show another suggestion in place of this one
  },
  subtle = false, -- draw only a mark until `accept` or `ask` is pressed
  notices = true, -- say that Redraft is on (once), that a model loads, and errors
  thinking = "⋯", -- drawn behind the line while an answer takes long; false: nothing
}

M.values = vim.deepcopy(M.defaults)

local function check(given)
  vim.validate("redraft", given, "table")
  vim.validate("redraft.subtle", given.subtle, "boolean", true)
  vim.validate("redraft.keys", given.keys, "table", true)
  vim.validate("redraft.notices", given.notices, "boolean", true)
  vim.validate("redraft.thinking", given.thinking, function(value)
    return value == nil or value == false or type(value) == "string"
  end, "a short text, or false")
  for name in pairs(given) do
    if M.defaults[name] == nil then
      local hint = "settings of the server belong in vim.lsp.config('redraft', { init_options = … })"
      error(("Redraft has no option %q here; %s"):format(name, hint), 0)
    end
  end
  for name, key in pairs(given.keys or {}) do
    if M.defaults.keys[name] == nil then
      local known = table.concat(vim.tbl_keys(M.defaults.keys), ", ")
      error(("Redraft has no key %q; there are %s"):format(name, known), 0)
    end
    vim.validate("redraft.keys." .. name, key, function(value)
      return type(value) == "string" or value == false
    end, "a key, or false")
  end
end

--- Apply the options of `require("redraft").setup` or `vim.g.redraft`.
function M.set(given)
  check(given)
  M.values = vim.tbl_deep_extend("force", M.defaults, given)
end

return M
