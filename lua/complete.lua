-- complete: active jobs are done: kept for their retention, or deleted.
-- KEYS: answers expiry jobs meta active holder stats
-- RARE KEYS: answers expiry jobs meta active holder stats tries errors unique completed endings results
-- ARGV: caller seq budget, then per job: id, fence, result ('' none, '!' dropped, '=' and its JSON)
-- Reply: text: n OK | n STALE; RARE
-- Cost: 9 commands a call (one more for a new caller), none per job; options add to it
-- Uses: clock repeats outcomes text chunks held day finish tries
local answers, expiry, jobs, meta, active, holder, stats, tries, errors, unique, completed,
  endings, results = unpack(KEYS)

if kept then
  return kept
end
local full = #KEYS > 7
local ids, fences = {}, {}
for i = 4, #ARGV, 3 do
  ids[#ids + 1], fences[#fences + 1] = ARGV[i], ARGV[i + 1]
end
local entries = holders(ids, fences, true)
local done, deleted, tried, kept_results = {}, {}, {}, {}

local function end_well(i, entry)
  local id, result = ids[i], ARGV[3 + i * 3]
  if field(entry, 'tried') then
    tried[#tried + 1] = id
  end
  if not field(entry, 'retention') then
    deleted[#deleted + 1] = id
    return free_unique(id, entry)
  end
  local dropped = result == '!'
  finish(id, entry, dropped and 'completed_without_result' or 'completed', worker_of(entry), 0)
  if sub(result, 1, 1) == '=' then
    kept_results[#kept_results + 1], kept_results[#kept_results + 2] = id, sub(result, 2)
  end
end

for i, entry in ipairs(entries) do
  if entry then
    -- With nothing but `fp` at its end the job has no option that matters here.
    local plain = sub(entry, -36, -33) == ' fp='
    if not full and not plain then
      return redis.status_reply('RARE')
    end
    done[#done + 1] = ids[i]
    if plain then
      deleted[#deleted + 1] = ids[i]
    else
      end_well(i, entry)
    end
    outcome('OK')
  else
    outcome('STALE')
  end
end

if #deleted == 0 then
  open_writes()
end
each('HDEL', jobs, deleted)
if #done > 0 then
  if #tried > 0 then
    forget_tries(tried)
    each('HDEL', errors, deleted)
  end
  if full then
    each('HSET', results, kept_results)
    write_finished(completed)
  end
  release(done)
  call('HINCRBY', meta, 'unfinished', -#done)
  call('HINCRBY', stats, today() .. ':completed', #done)
end
return keep(outcomes())
