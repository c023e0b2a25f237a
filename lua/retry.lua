-- retry: attempts failed. Below max_attempts a job is due again after its delay, else archived.
-- KEYS: answers expiry jobs meta active holder scheduled retry wake tries errors unique archived endings stats progress
-- ARGV: caller seq budget, then per job: id, fence, delay (ms), end of its JSON failure
-- Reply: text: n RETRY | n ARCHIVED | n STALE
-- Cost: 17 commands a call, one per job
-- Uses: clock repeats outcomes text chunks held release records day publish ended finish failures tries wake due
local answers, expiry, jobs, meta, active, holder, scheduled, retry, wake, tries, errors, unique,
  archived, endings, stats, progress = unpack(KEYS)

if kept then
  return kept
end
local ids, fences = {}, {}
for i = 4, #ARGV, 4 do
  ids[#ids + 1], fences[#fences + 1] = ARGV[i], ARGV[i + 1]
end
local entries = only_with_record(ids, holders(ids, fences, true))
local counts, lines = call('HMGET', tries, unpack(ids)), call('HMGET', errors, unpack(ids))
local failed, held, later, new_counts, new_lines, ended = {}, {}, {}, {}, {}, 0
local first_due = earliest_due() or math.huge
local earlier = false

local function fail(i, entry)
  local id, worker = ids[i], worker_of(entry)
  local attempt, crash = tries_of(counts[i])
  attempt = attempt + 1
  local counted = ',"attempt":' .. attempt
  failed[#failed + 1] = id
  new_counts[#new_counts + 1], new_counts[#new_counts + 2] = id, attempt .. ' ' .. crash
  new_lines[#new_lines + 1] = id
  new_lines[#new_lines + 1] = failures_with(lines[i], counted, worker, ARGV[3 + i * 4])
  held[#held + 1] = entry
  local due, deadline = now + ARGV[2 + i * 4], tonumber(field(entry, 'deadline'))
  local exhausted = attempt >= (tonumber(field(entry, 'max_attempts')) or 25)
  if exhausted or deadline and due >= deadline then
    ended = ended + 1
    finish('archived', id, entry, exhausted and 'exhausted' or 'expired', worker)
    return outcome('ARCHIVED')
  end
  later[#later + 1], later[#later + 2] = int(due), id
  earlier = earlier or due < first_due
  outcome('RETRY')
end

for i, entry in ipairs(entries) do
  if entry then
    fail(i, entry)
  else
    outcome('STALE')
  end
end

open_writes()
if #failed > 0 then
  each('ZADD', retry, later)
  keep_tries(new_counts)
  each('HSET', errors, new_lines)
  write_finished({ archived = archived })
  release_all(failed, held)
  if ended > 0 then
    call('HINCRBY', meta, 'unfinished', -ended)
    count_ended('expired')
  end
  call('HINCRBY', stats, today() .. ':failed', #failed)
  if earlier then
    leave_wake()
  end
  tell_ended()
end
return keep_after(#failed > 0, outcomes())
