-- sweep: does a slice of what time has made due. Promotes always; reclaims, evicts, mends and drops
-- idle callers about once a second per queue, or if told to.
-- KEYS: answers expiry jobs meta active holder scheduled retry completed archived cancelled quarantined tries errors endings results wake pending:0..9
-- ARGV: shared|now, jitter (0 to 1)
-- Reply: array of integers: again (0|1: a slice was full), promoted, reclaimed, quarantined,
--        expired, evicted, claimable (0|1), ms until the next job is due (-1 none)
-- Cost: 10 commands a call with nothing to do, 19 about once a second; a slice touches at most 200 jobs. Repeats by nature
-- Uses: clock text chunks held wake lanes due failures tries
local answers, expiry, jobs, meta, active, holder, scheduled, retry, completed, archived, cancelled,
  quarantined, tries, errors, endings, results, wake = unpack(KEYS)

local PROMOTE, RECLAIM, EVICT, CALLERS, MEND, MAX_READ = 100, 50, 10, 100, 100, 1048576
local TEN_YEARS = 3650 * 86400000
local settings = call('HMGET', meta, 'lanes', 'swept_at', 'paused', 'mend', 'ghosts',
  'unfinished', 'tried')
local lanes = known_lanes(settings[1])
local again, unfinished, to_pending = false, 0, 0

local function due_in(key, most)
  local ids = call('ZRANGEBYSCORE', key, '-inf', int(now), 'LIMIT', 0, most)
  again = again or #ids == most
  return ids
end

-- Scheduled and retry jobs whose time has come, the earliest first.
local function due_jobs()
  local due = {}
  for _, key in ipairs({ scheduled, retry }) do
    local found = call('ZRANGEBYSCORE', key, '-inf', int(now), 'WITHSCORES', 'LIMIT', 0, PROMOTE)
    for i = 1, #found, 2 do
      due[#due + 1] = { found[i], tonumber(found[i + 1]), key, #due }
    end
  end
  table.sort(due, function(a, b)
    return a[2] < b[2] or a[2] == b[2] and a[4] < b[4]
  end)
  again = again or #due >= PROMOTE
  return due
end

-- The lane of each job; only a queue with several lanes has to read records for it. May know fewer
-- than it was asked for, after about 1 MiB read.
local function priorities_of(due)
  local priorities, read = {}, 0
  for i, job in ipairs(due) do
    if i > PROMOTE or read >= MAX_READ then
      break
    end
    priorities[i] = tonumber(sub(lanes, 1, 1))
    if #lanes > 1 then
      local record = call('HGET', jobs, job[1]) or ''
      read = read + #record
      local head = match(record, '^at=%d+( fp=%x+[^\n]-) kind=')
      priorities[i] = head and (tonumber(field(head, 'priority')) or 4) or priorities[i]
    end
  end
  return priorities
end

local function promote()
  local due = due_jobs()
  local priorities, lists = priorities_of(due), {}
  local moved = { [scheduled] = {}, [retry] = {} }
  for i, priority in ipairs(priorities) do
    local list = lists[priority] or {}
    lists[priority] = list
    list[#list + 1] = due[i][1]
    table.insert(moved[due[i][3]], due[i][1])
  end
  for priority, list in pairs(lists) do
    each('LPUSH', lane(priority), list)
  end
  each('ZREM', scheduled, moved[scheduled])
  each('ZREM', retry, moved[retry])
  to_pending = to_pending + #priorities
  return #priorities
end

local function forget_failures(ids)
  if #ids > 0 then
    forget_tries(ids)
    call('HDEL', errors, unpack(ids))
  end
end

-- What settling needs of a job whose lease ran out: its holder's entry, or, where that is gone or
-- broken, its record's header.
local function entry_of(id, entry)
  if entry and match(entry, '^%d+ %S+ fp=') then
    return entry
  end
  return '0 - ' .. (match(call('HGET', jobs, id), '^at=%d+ (fp=%x+[^\n]-) kind=') or '')
end

-- After the first crash a job is put back; after later ones it waits 5 s × 4^(crash - 2) ± 50 %.
local function crash_delay(crash, i)
  local spread = 0.5 + (tonumber(ARGV[2]) + i * 0.618034) % 1
  return math.min(math.floor(5000 * 4 ^ (crash - 2) * spread), TEN_YEARS)
end

local function reclaim()
  local ids = due_in(active, RECLAIM)
  if #ids == 0 then
    return 0
  end
  local entries, counts = call('HMGET', holder, unpack(ids)), call('HMGET', tries, unpack(ids))
  local lines, new_counts, new_lines, later = call('HMGET', errors, unpack(ids)), {}, {}, {}
  local back, gone = {}, {}
  local function crash_one(i)
    local id, entry = ids[i], entry_of(ids[i], entries[i])
    local attempt, crash = tries_of(counts[i])
    crash = crash + 1
    new_counts[#new_counts + 1], new_counts[#new_counts + 2] = id, attempt .. ' ' .. crash
    new_lines[#new_lines + 1] = id
    new_lines[#new_lines + 1] =
      failures_with(lines[i], ',"crash":' .. crash, worker_of(entry), '}')
    if crash == 1 then
      back[#back + 1] = { tonumber(field(entry, 'priority')) or 4, id }
    else
      later[#later + 1], later[#later + 2] = int(now + crash_delay(crash, i)), id
    end
  end
  for i, id in ipairs(ids) do
    if call('HEXISTS', jobs, id) == 1 then
      crash_one(i)
    else
      gone[#gone + 1] = id
    end
  end
  for _, job in ipairs(back) do
    call('LPUSH', lane(job[1]), job[2])
  end
  each('ZADD', retry, later)
  keep_tries(new_counts)
  each('HSET', errors, new_lines)
  release(ids)
  forget_failures(gone)
  unfinished = unfinished - #gone
  to_pending = to_pending + #back
  return #ids - #gone
end

local function evict()
  local evicted = 0
  for _, key in ipairs({ completed, archived, cancelled, quarantined }) do
    local ids = due_in(key, EVICT)
    if #ids > 0 then
      call('HDEL', jobs, unpack(ids))
      forget_failures(ids)
      call('HDEL', endings, unpack(ids))
      call('HDEL', results, unpack(ids))
      call('ZREM', key, unpack(ids))
      evicted = evicted + #ids
    end
  end
  return evicted
end

-- Callers that were idle for their budget and a minute more: their answers are dropped.
local function drop_callers()
  for _, member in ipairs(due_in(expiry, CALLERS)) do
    local caller = sub(member, #'answers ' + 1)
    local ends = tonumber(match(call('HGET', answers, caller) or '', '^%d+ (%d+)'))
    if ends and ends > now then
      call('ZADD', expiry, int(ends), member)
    else
      call('HDEL', answers, caller)
      call('ZREM', expiry, member)
    end
  end
end

-- Lease and holder are made and ended together. Where they differ, somebody's hand was at work: a
-- job with a holder but no lease gets an expired one, so that the next sweep reclaims it. A lease
-- without holder runs out by itself.
local function mend()
  if call('HLEN', holder) == call('ZCARD', active) then
    return
  end
  local scan, ids = call('HSCAN', holder, settings[4] or '0', 'COUNT', MEND), {}
  for i = 1, #scan[2], 2 do
    ids[#ids + 1] = scan[2][i]
  end
  local leases = #ids > 0 and call('ZMSCORE', active, unpack(ids)) or {}
  for i, id in ipairs(ids) do
    if not leases[i] then
      call('ZADD', active, int(now), id)
    end
  end
  call('HSET', meta, 'mend', scan[1])
end

-- Counters are right by themselves, unless a script died half-way or somebody's hand was at work.
-- What they count is known at once: where they differ, they are set right.
local function mend_counters()
  local counted = -(tonumber(settings[5]) or 0)
  for priority in gmatch(lanes, '%d') do
    counted = counted + call('LLEN', lane(priority))
  end
  for _, key in ipairs({ scheduled, active, retry }) do
    counted = counted + call('ZCARD', key)
  end
  if settings[6] and settings[6] ~= int(counted) then
    call('HSET', meta, 'unfinished', int(counted))
  end
  local tried = call('HLEN', tries)
  if settings[7] and settings[7] ~= int(tried) then
    call('HSET', meta, 'tried', tried)
  end
end

open_writes()
local swept_at = tonumber(settings[2]) or 0
local thorough = ARGV[1] == 'now' or now < swept_at or now - swept_at >= 1000
if thorough then
  mend_counters()
end
local promoted, reclaimed, evicted = promote(), 0, 0
local first_due = earliest_due() or math.huge
if thorough then
  local promote_again = again
  again = false
  reclaimed = reclaim()
  evicted = evict()
  drop_callers()
  mend()
  -- A queue that nobody has made stays unmade.
  if not again and settings[6] then
    call('HSET', meta, 'swept_at', int(now))
  end
  again = again or promote_again
end
if unfinished ~= 0 then
  call('HINCRBY', meta, 'unfinished', unfinished)
end
local next_due = earliest_due()
if to_pending > 0 or next_due and next_due < first_due then
  leave_wake()
end
local claimable = -(tonumber(settings[5]) or 0)
for priority in gmatch(settings[3] and '' or lanes, '%d') do
  claimable = claimable + call('LLEN', lane(priority))
end
next_due = next_due and math.max(next_due - now, 0) or -1
return {
  again and 1 or 0, promoted, reclaimed, 0, 0, evicted, claimable > 0 and 1 or 0, next_due,
}
