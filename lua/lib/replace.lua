-- What a duplicate writes into its holder's header. A field that scripts read stands before `kind`.
local function set_field(head, name, value)
  local bare = string.gsub(head, ' ' .. name .. '=%S+', '')
  return value and string.gsub(bare, ' kind=', ' ' .. name .. '=' .. value .. ' kind=', 1) or bare
end

-- The holder's header with another payload: `mine` is the header that comes with it. The first
-- content stays known, by which a repeat of the holder's own enqueue is told from a conflict.
local function head_of_payload(head, mine)
  local old_fp, fp = field(head, 'fp'), match(mine, '^fp=(%x+)')
  local first = field(head, 'first') or old_fp
  head = string.gsub(head, ' fp=%x+', ' fp=' .. fp, 1)
  head = set_field(head, 'first', first ~= fp and first or nil)
  for _, name in ipairs({ 'codec', 'version' }) do
    local value = field(mine, name)
    local bare = string.gsub(head, ' ' .. name .. '=%S+', '')
    head = bare .. (value and ' ' .. name .. '=' .. value or '')
  end
  return head
end
