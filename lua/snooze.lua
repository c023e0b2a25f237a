-- snooze: active jobs run later; no attempt is counted.
-- KEYS: answers expiry jobs meta active holder scheduled retry wake progress
-- ARGV: caller seq budget, then per job: id fence delay (ms)
-- Reply: text: n OK | n STALE
-- Cost: 10 commands a call (two more if it leaves a wake token), one per job; deadlines add one
-- Uses: clock repeats outcomes text chunks held release records watch wake due
local answers, expiry, jobs, meta, active, holder, scheduled, retry, wake, progress = unpack(KEYS)

if kept then
  return kept
end
local ids, fences = {}, {}
for i = 4, #ARGV, 3 do
  ids[#ids + 1], fences[#fences + 1] = ARGV[i], ARGV[i + 1]
end
local first_due = earliest_due() or math.huge
local snoozed, held, later, earlier = {}, {}, {}, false
for i, entry in ipairs(only_with_record(ids, holders(ids, fences, true))) do
  if entry then
    local due = now + tonumber(ARGV[3 + i * 3])
    snoozed[#snoozed + 1], held[#held + 1] = ids[i], entry
    later[#later + 1], later[#later + 2] = int(due), ids[i]
    earlier = earlier or due < first_due
    outcome('OK')
  else
    outcome('STALE')
  end
end

open_writes()
each('ZADD', scheduled, later)
watch_deadlines(snoozed, held)
release_all(snoozed, held)
if earlier then
  leave_wake()
end
return keep_after(#snoozed > 0, outcomes())
