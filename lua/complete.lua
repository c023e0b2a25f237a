-- complete: active jobs are done: kept for their retention, or deleted.
-- KEYS: answers expiry jobs meta active holder stats
-- RARE KEYS: answers expiry jobs meta active holder stats tries errors unique completed endings results progress crashes seen
-- ARGV: caller seq budget, then per job: id, fence, result ('' none, '!' dropped, '=' and its JSON)
-- Reply: text: n OK | n STALE; RARE
-- Cost: 10 commands a call (one more for a new caller), none per job; options add to it
-- Uses: clock repeats text chunks held release day
-- Rare uses: outcomes publish ended finish tries remember
local answers, expiry, jobs, meta, active, holder, stats, tries, errors, unique, completed,
  endings, results, progress, crashes, seen = unpack(KEYS)

if kept then
  return kept
end
local job_ids, fences = {}, {}
for i = 4, #ARGV, 3 do
  local n = (i - 1) / 3
  job_ids[n], fences[n] = ARGV[i], ARGV[i + 1]
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

-- A completion clears its fingerprint's crashes, counted in `meta.crashes`. Of those who wait for
-- jobs, and are to be told, `meta.watched` knows.
local settings = call('HMGET', meta, 'crashes', 'retain_completed', 'watched')
local crashed = (settings[1] or '0') ~= '0'

-- The usual call: all are held, and of all nothing is kept.
if #KEYS == 7 then
  if crashed or settings[2] or (tonumber(settings[3]) or 0) > now then
    return redis.status_reply('RARE')
  end
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

local done, held, deleted, tried, kept_results, fingerprints = {}, {}, {}, {}, {}, {}

local function end_well(i, entry)
  local id, result = job_ids[i], ARGV[3 + i * 3]
  -- Of a job without record nothing is kept.
  if kept_for('completed', entry) == 0 or call('HEXISTS', jobs, id) == 0 then
    deleted[#deleted + 1] = id
    has_ended('completed', id)
    if field(entry, 'tried') then
      tried[#tried + 1] = id
    end
    record_goes(id, entry)
    return free_unique(id, entry)
  end
  local reason = result == '!' and 'completed_without_result' or 'completed'
  finish('completed', id, entry, reason, worker_of(entry))
  if sub(result, 1, 1) == '=' then
    kept_results[#kept_results + 1], kept_results[#kept_results + 2] = id, sub(result, 2)
  end
end

for i, entry in ipairs(entries) do
  if entry then
    done[#done + 1], held[#held + 1] = job_ids[i], entry
    fingerprints[#fingerprints + 1] = field(entry, 'fp')
    end_well(i, entry)
    outcome('OK')
  else
    outcome('STALE')
  end
end

open_writes()
if #done > 0 then
  write_remembered()
  each('HDEL', jobs, deleted)
  if #tried > 0 then
    forget_tries(tried)
    call('HDEL', errors, unpack(tried))
  end
  each('HSET', results, kept_results)
  write_finished({ completed = completed })
  release_all(done, held)
  local cleared = crashed and call('HDEL', crashes, unpack(fingerprints)) or 0
  if cleared > 0 then
    call('HINCRBY', meta, 'crashes', -cleared)
  end
  count_completed(#done)
  tell_ended()
end
return keep_after(#done > 0, outcomes())
