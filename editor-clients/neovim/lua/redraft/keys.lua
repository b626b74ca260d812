-- Keys: ours where a suggestion is shown, and what they were before otherwise.
local config = require("redraft.config")
local edit = require("redraft.edit")
local ghost = require("redraft.ghost")
local text = require("redraft.text")

local M = {}

--- Is a menu of completions open, Neovim's own or a plugin's?
local function menu_is_open()
  if vim.fn.pumvisible() == 1 then
    return true
  end
  local cmp, blink = package.loaded["cmp"], package.loaded["blink.cmp"]
  local function says(visible)
    local known, open = pcall(visible)
    return known and open == true
  end
  return (cmp ~= nil and says(cmp.visible)) or (blink ~= nil and says(blink.is_visible))
end

local function in_snippet()
  local luasnip = package.loaded["luasnip"]
  return vim.snippet.active({ direction = 1 }) or (luasnip ~= nil and luasnip.locally_jumpable(1))
end

local function in_indent()
  local row, column = text.cursor()
  local before = text.line(0, row):sub(1, column)
  return before:find("^%s*$") ~= nil and not edit.is_placed()
end

--- May Tab be ours? In insert mode not where it has other work.
function M.is_free()
  if vim.fn.mode():sub(1, 1) ~= "i" then
    return true
  end
  return not (menu_is_open() or in_snippet() or in_indent())
end

local function anything()
  return ghost.is_here() or edit.is_ready()
end

-- --- falling through ------------------------------------------------------------------------

local before = {} -- the mapping that was there, by mode and key; as `maparg()` tells
local run = {} -- functions that mappings run, by number

--- Keys that do what `mapping` did. Returned by an expression, so its keys are not mapped again.
local function keys_of(mapping, key)
  local function typed(keys)
    return vim.api.nvim_replace_termcodes(keys, true, true, true)
  end
  if not mapping or vim.tbl_isempty(mapping) then
    return typed(key)
  end
  local result = mapping.rhs or ""
  if mapping.callback and mapping.expr == 0 then
    run[1] = mapping.callback
    return typed("<Cmd>lua require('redraft.keys').run()<CR>")
  elseif mapping.callback then
    result = mapping.callback() or ""
    result = mapping.replace_keycodes == 1 and typed(result) or result
  elseif mapping.expr == 1 then
    result = vim.api.nvim_eval(result)
    result = mapping.replace_keycodes == 1 and typed(result) or result
  else
    result = typed(result)
  end
  if mapping.noremap == 0 and result ~= typed(key) then
    vim.api.nvim_feedkeys(result, "im", false) -- before what was typed since
    return ""
  end
  return result
end

function M.run()
  run[1]()
end

--- Map `key`: where `wanted()` says so it does `action` (of `require("redraft")`), else what it did.
local function map(mode, key, action, wanted, description)
  if not key then
    return
  end
  local slot = mode .. key
  local found = vim.fn.maparg(key, mode, false, true)
  if not (found.desc or ""):find("^Redraft") then
    before[slot] = found
  end
  vim.keymap.set(mode, key, function()
    if wanted() then
      return vim.keycode(("<Cmd>lua require('redraft').%s<CR>"):format(action))
    end
    return keys_of(before[slot], key)
  end, { expr = true, replace_keycodes = false, desc = "Redraft: " .. description })
end

--- Set all keys of the configuration.
function M.set()
  local keys = config.values.keys
  local function free()
    return anything() and M.is_free()
  end
  for _, mode in ipairs({ "i", "n" }) do
    map(mode, keys.accept, "accept()", free, "go to the suggestion, accept it")
    map(mode, keys.accept_always, "accept()", anything, "accept the suggestion, also in menus")
    map(mode, keys.accept_word, "accept('word')", anything, "accept the next word")
    map(mode, keys.accept_line, "accept('line')", anything, "accept the next line")
    map(mode, keys.reject, "reject()", anything, "reject the suggestion")
    map(mode, keys.ask, "next()", function()
      return true
    end, "ask for a suggestion now")
  end
  map("n", keys.escape, "reject()", edit.visible, "reject the edit")
end

return M
