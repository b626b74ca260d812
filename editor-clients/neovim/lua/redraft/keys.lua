-- Keys: they act on a visible suggestion, and otherwise do what they did before.
local config = require("redraft.config")
local edit = require("redraft.edit")
local ghost = require("redraft.ghost")

local M = {}

--- Return whether a completion menu is open, of Neovim or of a plugin.
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

--- Return whether Tab acts on suggestions: not in a menu or snippet of insert mode.
function M.is_free()
  return vim.fn.mode():sub(1, 1) ~= "i" or not (menu_is_open() or in_snippet())
end

local function anything()
  return ghost.is_here() or edit.is_ready()
end

-- --- falling through ------------------------------------------------------------------------

--- Our mappings: { mode, key, was, ours }. `was` is the previous mapping, from `maparg()`; `ours` is our
--- function.
local mapped = {}
local run = nil -- the action of a mapping without an expression, for `run()`
--- Number of times that keys were set. Older mappings that another plugin kept do nothing.
local set_times = 0

--- Return the global mapping of `key`. A mapping of a single buffer takes precedence there.
local function mapping_of(mode, key)
  local found = vim.fn.maparg(key, mode, false, true)
  if found.buffer ~= 1 then
    return found
  end
  for _, each in ipairs(vim.api.nvim_get_keymap(mode)) do
    if each.lhsraw == vim.keycode(key) then
      return each
    end
  end
  return {}
end

--- Return the keys that do what `mapping` did, for an expression mapping.
local function keys_of(mapping, key)
  local function typed(keys)
    return vim.api.nvim_replace_termcodes(keys, true, true, true)
  end
  if vim.tbl_isempty(mapping) then
    -- Neovim turns an unmapped Alt chord into Escape and the key only if it was typed (|i_ALT|). The
    -- result of a mapping was not typed: it would insert the bare key.
    local plain = key:match("^<[MmAa]%-(.+)>$")
    if plain and not plain:find(".%-.") then
      vim.api.nvim_feedkeys(typed("<Esc>" .. (#plain > 1 and "<" .. plain .. ">" or plain)), "imt", false)
      return ""
    end
    return typed(key)
  end
  local result = (mapping.rhs or ""):gsub("<SID>", ("<SNR>%d_"):format(mapping.sid or 0))
  if mapping.callback and mapping.expr == 0 then
    run = mapping.callback
    return typed("<Cmd>lua require('redraft.keys').run()<CR>")
  elseif mapping.callback then
    result = mapping.callback() or ""
    result = mapping.replace_keycodes == 1 and typed(result) or result
  elseif mapping.expr == 1 then
    result = vim.api.nvim_eval(typed(result)) -- keys in an expression may be quoted or not
    result = mapping.replace_keycodes == 1 and typed(result) or result
  else
    result = typed(result)
  end
  if mapping.noremap == 0 and result ~= typed(key) then
    vim.api.nvim_feedkeys(result, "im", false) -- before keys typed since
    return ""
  end
  return result
end

function M.run()
  run()
end

--- Restore the keys that are still ours, in reverse order.
local function restore()
  for i = #mapped, 1, -1 do
    local mode, key, was, ours = unpack(mapped[i])
    if mapping_of(mode, key).callback == ours then -- descriptions are not unique
      vim.keymap.del(mode, key)
      if not vim.tbl_isempty(was) then
        vim.fn.mapset(mode, false, was)
      end
    end
  end
  mapped = {}
end

--- Map `key` to `action` (of `require("redraft")`) if `wanted()`, otherwise to its previous mapping.
local function map(mode, key, action, wanted, description)
  if not key then
    return
  end
  local was, mine = mapping_of(mode, key), set_times
  local function ours()
    if mine == set_times and wanted() then
      return vim.keycode(("<Cmd>lua require('redraft').%s<CR>"):format(action))
    end
    return keys_of(was, key)
  end
  mapped[#mapped + 1] = { mode, key, was, ours }
  local options = { expr = true, replace_keycodes = false, desc = "Redraft: " .. description }
  vim.keymap.set(mode, key, ours, options)
end

--- Set all keys of the configuration, and remove those set before.
function M.set()
  restore()
  set_times = set_times + 1
  local keys = config.values.keys
  local function free()
    return anything() and M.is_free()
  end
  for _, mode in ipairs({ "i", "n" }) do
    map(mode, keys.accept, "tab()", free, "go to the suggestion, accept it")
    map(mode, keys.accept_always, "accept()", anything, "accept the suggestion, also in menus")
    map(mode, keys.accept_word, "accept('word')", anything, "accept the next word")
    map(mode, keys.accept_line, "accept('line')", anything, "accept the next line")
    map(mode, keys.another, "another()", anything, "show another suggestion")
    map(mode, keys.ask, "trigger()", function()
      return true
    end, "ask for a suggestion now")
  end
  -- Not in normal mode, where `<C-]>` goes to a definition.
  map("i", keys.reject, "reject()", anything, "reject the suggestion")
  map("n", keys.escape, "dismiss()", edit.visible, "hide the edit")
end

return M
