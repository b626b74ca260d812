-- Draws Redraft's inline completions as ghost text and reports what became of them.
-- Decides nothing: when to ask back, what to show and what to withhold is the server's business.
local M = {}

local METHOD = "textDocument/inlineCompletion"
local space = vim.api.nvim_create_namespace("redraft")

--- What is drawn: { buffer, row, column, text, item, client }, row and column 0-based in bytes.
local shown = nil
--- The request under way: { client, id }.
local pending = nil
--- The server's last words on why nothing is shown; for a status line.
M.status = ""

local function client_of(buffer)
  return vim.lsp.get_clients({ bufnr = buffer, name = "redraft" })[1]
end

local function clear()
  if shown and vim.api.nvim_buf_is_valid(shown.buffer) then
    vim.api.nvim_buf_clear_namespace(shown.buffer, space, 0, -1)
  end
  shown = nil
end

local function draw(ghost)
  clear()
  local lines = vim.split(ghost.text, "\n", { plain = true })
  local below = {}
  for i = 2, #lines do
    below[#below + 1] = { { lines[i], "RedraftGhost" } }
  end
  vim.api.nvim_buf_set_extmark(ghost.buffer, space, ghost.row, ghost.column, {
    virt_text = { { lines[1], "RedraftGhost" } },
    virt_text_pos = "inline",
    virt_lines = #below > 0 and below or nil,
    hl_mode = "combine",
  })
  shown = ghost
end

--- The part of the item that is not in the buffer yet, or nil where it cannot be drawn here.
local function ghost_of(item, client, buffer)
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  row = row - 1
  local text = item.insertText:gsub("\r\n?", "\n") -- a buffer's lines have no line ends
  if item.range then
    if item.range.start.line ~= row then
      return nil
    end
    local line = vim.api.nvim_buf_get_lines(buffer, row, row + 1, false)[1] or ""
    local from = vim.str_byteindex(line, client.offset_encoding, item.range.start.character, false)
    local typed = line:sub(from + 1, column)
    if text:sub(1, #typed) ~= typed then
      return nil
    end
    text = text:sub(#typed + 1)
  end
  if text == "" then
    return nil
  end
  return { buffer = buffer, row = row, column = column, text = text, item = item, client = client }
end

local function receive(client, buffer, tick, result)
  if vim.api.nvim_get_current_buf() ~= buffer or vim.fn.mode():sub(1, 1) ~= "i" then
    return
  end
  if vim.api.nvim_buf_get_changedtick(buffer) ~= tick then
    return -- made for a text that is gone; a newer request is under way
  end
  local items = result and (result.items or result) or {}
  local ghost = items[1] and ghost_of(items[1], client, buffer)
  if not ghost then
    return clear()
  end
  draw(ghost)
  client:notify("textDocument/didShowCompletion", { item = ghost.item })
end

--- Say once why there is no server, where that is plain.
local function explain()
  local command = vim.lsp.config.redraft and vim.lsp.config.redraft.cmd
  if M.status == "" and type(command) == "table" and vim.fn.executable(command[1]) == 0 then
    M.status = ("%s is not on the PATH; install it, or set cmd with vim.lsp.config"):format(command[1])
    vim.notify("Redraft: " .. M.status, vim.log.levels.WARN)
  end
end

--- Ask the server; a newer question cancels the older one.
function M.ask(kind)
  local buffer = vim.api.nvim_get_current_buf()
  local client = client_of(buffer)
  if not client then
    return explain()
  end
  if pending then
    pending.client:cancel_request(pending.id)
    pending = nil
  end
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.context = { triggerKind = kind or 2 }
  local tick = vim.api.nvim_buf_get_changedtick(buffer)
  local sent, id
  sent, id = client:request(METHOD, params, function(err, result)
    if pending and pending.id == id then -- else a newer question is under way
      pending = nil
    end
    if not err then
      receive(client, buffer, tick, result)
    end
  end, buffer)
  pending = sent and { client = client, id = id } or nil
end

--- Keep the ghost on the screen while its next characters are typed; drop it otherwise.
local function follow()
  if not shown then
    return
  end
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  local line = vim.api.nvim_get_current_line()
  local typed = line:sub(shown.column + 1, column)
  if row - 1 == shown.row and typed ~= "" and shown.text:sub(1, #typed) == typed then
    draw(vim.tbl_extend("force", shown, { column = column, text = shown.text:sub(#typed + 1) }))
  else
    clear()
  end
end

--- Insert what is shown. Returns false where nothing is, so that a mapping can fall through.
function M.accept()
  if not shown then
    return false
  end
  local ghost = shown
  clear()
  local lines = vim.split(ghost.text, "\n", { plain = true })
  vim.api.nvim_buf_set_text(
    ghost.buffer, ghost.row, ghost.column, ghost.row, ghost.column, lines
  )
  local row = ghost.row + #lines
  local column = #lines == 1 and ghost.column + #lines[1] or #lines[#lines]
  vim.api.nvim_win_set_cursor(0, { row, column })
  if ghost.item.command then
    ghost.client:exec_cmd(ghost.item.command, { bufnr = ghost.buffer })
  end
  return true
end

function M.visible()
  return shown and shown.text or nil
end

local function tab()
  if vim.fn.pumvisible() == 0 and shown then
    return "<Cmd>lua require('redraft').accept()<CR>"
  end
  return "<Tab>"
end

--- Start the server for every file and draw what it says. Called by plugin/redraft.lua.
function M.setup()
  vim.api.nvim_set_hl(0, "RedraftGhost", { link = "Comment", default = true })
  vim.lsp.handlers["didChangeStatus"] = function(_, result)
    M.status = result.message or ""
  end
  local group = vim.api.nvim_create_augroup("redraft", {})
  local function on(events, action)
    vim.api.nvim_create_autocmd(events, { group = group, callback = action })
  end
  on("TextChangedI", function()
    follow()
    M.ask()
  end)
  on({ "InsertLeave", "BufLeave" }, clear)
  vim.keymap.set("i", "<Tab>", tab, { expr = true, desc = "Redraft: accept, or a tab" })
  vim.lsp.enable("redraft")
end

return M
