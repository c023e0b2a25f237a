-- requeue: active jobs go back to the front of their lane, the first of the call first.
-- KEYS: answers expiry jobs meta active holder ghosts wake progress pending:0..9
-- ARGV: caller seq budget, then per job: id fence
-- Reply: text: n OK | n STALE
-- Cost: 9 commands a call, one per job; deadlines add one
-- Uses: clock repeats outcomes text chunks held release records watch wake lanes ghosts entries
local answers, expiry, jobs, meta, active, holder, ghosts, wake, progress = unpack(KEYS)

if kept then
  return kept
end
local ids, fences, returned, held = {}, {}, {}, {}
for i = 4, #ARGV, 2 do
  ids[#ids + 1], fences[#fences + 1] = ARGV[i], ARGV[i + 1]
end
local entries = only_with_record(ids, holders(ids, fences, true))
for i, entry in ipairs(entries) do
  if entry then
    returned[#returned + 1], held[#held + 1] = ids[i], entry
    outcome('OK')
  else
    outcome('STALE')
  end
end

open_writes()
local to_front = {}
for i = #ids, 1, -1 do
  if entries[i] then
    local priority = priority_of(entries[i])
    to_front[priority] = to_front[priority] or {}
    table.insert(to_front[priority], ids[i])
  end
end
for priority, list in pairs(to_front) do
  push('RPUSH', priority, list)
end
watch_deadlines(returned, held)
release_all(returned, held)
if #returned > 0 then
  leave_wake()
end
return keep_after(#returned > 0, outcomes())
