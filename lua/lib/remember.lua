-- Identities that outlive their records: id → `<first fingerprint> <end>`, for `remember` ms from
-- now. `meta.remembered` counts them, so that others never look.
local seen_pairs, seen_ends = {}, {}

-- The record of this job goes. `text` holds `remember` and `first`, or else `fp`.
local function record_goes(id, text)
  local remember = tonumber(field(text, 'remember'))
  local first = field(text, 'first') or field(text, 'fp')
  if remember and first then
    local ends = int(now + remember)
    seen_pairs[#seen_pairs + 1], seen_pairs[#seen_pairs + 2] = id, first .. ' ' .. ends
    seen_ends[#seen_ends + 1], seen_ends[#seen_ends + 2] = ends, 'seen ' .. id
  end
end

-- Before the records are deleted: a script that dies between the two remembers too early.
local function write_remembered()
  local added = each('HSET', seen, seen_pairs)
  each('ZADD', expiry, seen_ends)
  if added > 0 then
    call('HINCRBY', meta, 'remembered', added)
  end
end
