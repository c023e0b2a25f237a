-- requeue: active jobs go back to the front of their lane, the first of the call first.
-- KEYS: answers expiry meta active holder ghosts wake pending:0..9
-- ARGV: caller seq budget, then per job: id fence
-- Reply: text: n OK | n STALE
-- Cost: 8 commands a call, one per job
-- Uses: clock repeats outcomes text held wake lanes ghosts
local answers, expiry, meta, active, holder, ghosts, wake = unpack(KEYS)

if kept then
  return kept
end
local ids, fences, returned = {}, {}, {}
for i = 4, #ARGV, 2 do
  ids[#ids + 1], fences[#fences + 1] = ARGV[i], ARGV[i + 1]
end
local entries = holders(ids, fences, true)
local any_ghosts = (tonumber(call('HGET', meta, 'ghosts')) or 0) > 0
for i, entry in ipairs(entries) do
  if entry then
    returned[#returned + 1] = ids[i]
    outcome('OK')
  else
    outcome('STALE')
  end
end

-- With g older entries of it in the lane to be skipped, the first g entries met are skipped: so
-- g + 1 are pushed, and g more are to be skipped.
local function push_front(id, priority)
  local older = any_ghosts and tonumber(call('HGET', ghosts, priority .. ':' .. id)) or 0
  for _ = 0, older do
    call('RPUSH', lane(priority), id)
  end
  if older > 0 then
    add_ghosts(priority, id, older)
  end
end

open_writes()
for i = #ids, 1, -1 do
  if entries[i] then
    push_front(ids[i], tonumber(field(entries[i], 'priority')) or 4)
  end
end
release(returned)
if #returned > 0 then
  leave_wake()
end
return keep(outcomes())
