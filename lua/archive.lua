-- archive: holders give active jobs up.
-- KEYS: answers expiry jobs meta active holder errors unique archived endings stats progress
-- ARGV: caller seq budget, then per job: id, fence, reason, end of its JSON failure ('' none)
-- Reply: text: n OK | n STALE
-- Cost: 14 commands a call, one per job; a unique key adds one or two
-- Uses: clock repeats outcomes text chunks held release records day publish ended finish failures
local answers, expiry, jobs, meta, active, holder, errors, unique, archived, endings, stats,
  progress = unpack(KEYS)

if kept then
  return kept
end
local ids, fences = {}, {}
for i = 4, #ARGV, 4 do
  ids[#ids + 1], fences[#fences + 1] = ARGV[i], ARGV[i + 1]
end
local entries = only_with_record(ids, holders(ids, fences, true))
local lines = call('HMGET', errors, unpack(ids))
local given_up, held, new_lines = {}, {}, {}
for i, entry in ipairs(entries) do
  if entry then
    local id, worker, said = ids[i], worker_of(entry), ARGV[3 + i * 4]
    given_up[#given_up + 1], held[#held + 1] = id, entry
    if said ~= '' then
      new_lines[#new_lines + 1] = id
      new_lines[#new_lines + 1] = failures_with(lines[i], '', worker, said)
    end
    finish('archived', id, entry, ARGV[2 + i * 4], worker)
    outcome('OK')
  else
    outcome('STALE')
  end
end

open_writes()
if #given_up > 0 then
  write_finished({ archived = archived })
  release_all(given_up, held)
  each('HSET', errors, new_lines)
  call('HINCRBY', meta, 'unfinished', -#given_up)
  call('HINCRBY', stats, today() .. ':failed', #given_up)
  tell_ended()
end
return keep_after(#given_up > 0, outcomes())
