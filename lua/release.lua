-- release: opens a fingerprint, then moves a slice of its quarantined jobs back to work.
-- KEYS: answers expiry jobs meta wake scheduled retry active completed archived cancelled quarantined tries unique endings quarantine crashes stats ghosts pending:0..9
-- ARGV: caller seq budget, fingerprint, how many quarantined jobs to pass over
-- Reply: text: `<was closed: 0|1> <released> <archived> <passed over | - at the end>`
-- Cost: 8 commands a call, up to 14 per job; a slice looks at 200 jobs
-- Uses: clock repeats text chunks wake lanes state unique ghosts entries day publish ended finish tries
local answers, expiry, jobs, meta, wake, scheduled, retry, active, completed, archived, cancelled,
  quarantined, tries, unique, endings, quarantine, crashes, stats, ghosts = unpack(KEYS)

if kept then
  return kept
end
local SLICE, MAX_READ = 200, 1048576
local fingerprint, from, read = ARGV[4], tonumber(ARGV[5]), 0
local ids = call('ZRANGE', quarantined, from, from + SLICE - 1)
local texts = #ids > 0 and call('HMGET', endings, unpack(ids)) or {}
local released, to_back, moved, keys, keys_taken, timers, counts = {}, {}, {}, {}, {}, {}, {}
local looked, kept_here = 0, 0

local function release_one(id, record)
  local settling = match(record, '^at=%d+( fp=%x+[^\n]-) kind=') or ''
  local token = field(settling, 'unique')
  local mode = match(field(settling, 'unique_mode') or '', '^%a+')
  local attempt = tries_of(call('HGET', tries, id))
  counts[#counts + 1], counts[#counts + 2] = id, attempt .. ' 0'
  moved[#moved + 1] = id
  if token and mode ~= 'throttle' then
    if keys_taken[token] or holder_of(token) then
      return finish('archived', id, settling, 'unique_key_taken', '-')
    end
    keys_taken[token] = true
    keys[#keys + 1], keys[#keys + 2] = token, id .. (mode == 'debounce' and ' debounce' or '')
  end
  local deadline = tonumber(field(settling, 'deadline'))
  if deadline then
    timers[#timers + 1], timers[#timers + 2] = int(deadline), 'deadline ' .. id
  end
  local priority = priority_of(settling)
  to_back[priority] = to_back[priority] or {}
  table.insert(to_back[priority], id)
  released[#released + 1] = id
end

for i, id in ipairs(ids) do
  if read >= MAX_READ then
    break
  end
  looked = looked + 1
  local text = texts[i] or ''
  local record = field(text, 'fp') == fingerprint and call('HGET', jobs, id)
  if record then
    read = read + #record
    release_one(id, record)
  else
    kept_here = kept_here + 1
  end
end

local closed = call('HEXISTS', quarantine, fingerprint)
-- First open, so that what comes now is admitted.
call('HDEL', quarantine, fingerprint)
if closed == 1 then
  call('HINCRBY', meta, 'quarantined', -1)
end
-- One that is not in quarantine goes on being counted.
local did = closed == 1 or #moved > 0
if did and call('HDEL', crashes, fingerprint) == 1 then
  call('HINCRBY', meta, 'crashes', -1)
end
local archived_ids = ends_at.archived and #ends_at.archived / 2 or 0
for priority, list in pairs(to_back) do
  push('LPUSH', priority, list)
end
write_finished({ archived = archived })
each('HSET', unique, keys)
each('ZADD', expiry, timers)
keep_tries(counts)
each('ZREM', quarantined, moved)
-- Last: by its ending a release that is repeated knows the job.
each('HDEL', endings, released)
if #released > 0 then
  call('HINCRBY', meta, 'unfinished', #released)
  leave_wake()
end
local at_end = #ids < SLICE and looked == #ids
local passed = at_end and '-' or int(from + kept_here)
return keep_after(did, closed .. ' ' .. #released .. ' ' .. int(archived_ids) .. ' ' .. passed)
