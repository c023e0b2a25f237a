-- complete: active jobs are done: kept for their retention, or deleted.
-- KEYS: answers expiry jobs meta active holder stats
-- RARE KEYS: answers expiry jobs meta active holder stats tries errors unique completed endings results
-- ARGV: caller seq budget, then per job: id, fence, result ('' none, '!' dropped, '=' and its JSON)
-- Reply: text: n OK | n STALE; RARE
-- Cost: 9 commands a call (one more for a new caller), none per job; options add to it
-- Uses: clock repeats text held day
-- Rare uses: outcomes chunks finish tries
local answers, expiry, jobs, meta, active, holder, stats, tries, errors, unique, completed,
  endings, results = unpack(KEYS)

if kept then
  return kept
end
local job_ids, fences = {}, {}
for i = 4, #ARGV, 3 do
  job_ids[#job_ids + 1], fences[#fences + 1] = ARGV[i], ARGV[i + 1]
end
local entries = holders(job_ids, fences, true)

-- With nothing but `fp` at its end a holder's entry tells of no option that matters here.
local function is_plain(entry)
  return sub(entry, -36, -33) == ' fp='
end

local function count_completed(count)
  call('HINCRBY', meta, 'unfinished', -count)
  call('HINCRBY', stats, today() .. ':completed', int(count))
end

-- The usual call: all are held, and of all nothing is kept.
if #KEYS == 7 then
  for i = 1, #job_ids do
    if not entries[i] or not is_plain(entries[i]) then
      return redis.status_reply('RARE')
    end
  end
  call('HDEL', jobs, unpack(job_ids))
  release(job_ids)
  count_completed(#job_ids)
  return keep(int(#job_ids) .. ' OK')
end
-- RARE PARTS

local done, deleted, tried, kept_results = {}, {}, {}, {}

local function end_well(i, entry)
  local id, result = job_ids[i], ARGV[3 + i * 3]
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
    done[#done + 1] = job_ids[i]
    end_well(i, entry)
    outcome('OK')
  else
    outcome('STALE')
  end
end

open_writes()
if #done > 0 then
  each('HDEL', jobs, deleted)
  if #tried > 0 then
    forget_tries(tried)
    each('HDEL', errors, deleted)
  end
  each('HSET', results, kept_results)
  write_finished(completed)
  release(done)
  count_completed(#done)
end
return keep(outcomes())
