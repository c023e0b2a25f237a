-- sweep: does a slice of what time has made due. Promotes always; reclaims, evicts, mends and drops
-- idle callers about once a second per queue, or if told to.
-- KEYS: answers expiry jobs meta active holder scheduled retry completed archived cancelled quarantined tries errors endings results wake progress unique seen ghosts quarantine crashes stats pending:0..9
-- ARGV: promote|shared|now, jitter (0 to 1)
-- Reply: array of integers: again (0|1: a slice was full), promoted, reclaimed, quarantined,
--        expired, evicted, claimable (0|1), ms until the next job is due (-1 none); then id and
--        reason per job that expired or was quarantined
-- Cost: 10 commands a call with nothing to do, 29 about once a
-- second; a slice touches at most 200 jobs. Repeats by nature
-- Uses: clock text chunks held release wake lanes due failures tries state ghosts entries day publish ended finish remember crashes reclaim
local answers, expiry, jobs, meta, active, holder, scheduled, retry, completed, archived, cancelled,
  quarantined, tries, errors, endings, results, wake, progress, unique, seen, ghosts, quarantine,
  crashes, stats = unpack(KEYS)

local PROMOTE, RECLAIM, EVICT, TIMERS, MEND, MAX_READ = 90, 20, 10, 40, 100, 1048576
local settings = call('HMGET', meta, 'lanes', 'swept_at', 'paused', 'mend', 'ghosts',
  'unfinished', 'crash_limit', 'crash_window', 'max_archived', 'stats_day',
  'tried', 'crashes', 'remembered', 'quarantined')
local lanes = known_lanes(settings[1])
some_ghosts = (tonumber(settings[5]) or 0) > 0
local again, unfinished, to_pending, read = false, 0, 0, 0
-- What the caller is told of jobs that ended: id and reason each.
local told = {}

local function end_job(state, id, settling, reason, worker)
  finish(state, id, settling, reason, worker)
  told[#told + 1], told[#told + 2] = id, reason
  unfinished = unfinished - 1
end

local function due_in(key, most)
  local ids = call('ZRANGEBYSCORE', key, '-inf', int(now), 'LIMIT', 0, most)
  again = again or #ids == most
  return ids
end

local function settling_of(id)
  local record = call('HGET', jobs, id) or ''
  read = read + #record
  return match(record, '^at=%d+( fp=%x+[^\n]-) kind=') or ''
end

-- Key (none: pending), id and priority of those whose deadline has passed.
local expired = {}

-- The deadline of a job: one that waits is archived, a running one is looked at again when its
-- lease ends. Answers when to look again, if at all.
local function expire(id)
  if call('HEXISTS', jobs, id) == 0 then
    return nil
  end
  local word, score = place_of(id)
  if word == 'ACTIVE' then
    return math.max(tonumber(score), now) + 1
  end
  local settling = not is_finished(word) and settling_of(id) or ''
  local deadline = tonumber(field(settling, 'deadline'))
  if not deadline or deadline > now then
    return deadline
  end
  end_job('archived', id, settling, 'expired', '-')
  local key = word == 'RETRY' and retry or word and scheduled
  expired[#expired + 1] = { key, id, priority_of(settling) }
end

-- The next place first, then out of the one before.
local function write_expired()
  write_finished({ archived = archived })
  ends_at, ending_texts, tokens, owners, deadlines = {}, {}, {}, {}, {}
  for _, job in ipairs(expired) do
    if job[1] then
      call('ZREM', job[1], job[2])
    else
      leave_lane(job[3], job[2])
    end
  end
end

-- Forgets an entry of a hash that ends by time; `ends` finds the time in its text.
local function forget(hash, name, ends, counter)
  local text = call('HGET', hash, name)
  local at = text and tonumber(match(text, ends))
  if at and at > now and at < 2 ^ 53 then
    return at
  end
  if text and at and call('HDEL', hash, name) == 1 and counter then
    call('HINCRBY', meta, counter, -1)
  end
end

local TIMED = {
  answers = function(caller) return forget(answers, caller, '^%d+ (%d+)') end,
  seen = function(id) return forget(seen, id, ' (%d+)$', 'remembered') end,
  crashes = function(fp) return forget(crashes, fp, '^%d+ (%d+)', 'crashes') end,
  unique = function(token) return forget(unique, token, ' throttle (%d+)$') end,
  deadline = expire,
}

-- What ends by time: an entry that was renewed meanwhile is looked at again at its new time.
local function work_off_timers()
  local over = {}
  for _, member in ipairs(due_in(expiry, TIMERS)) do
    if read >= MAX_READ then
      again = true
      break
    end
    local what, name = match(member, '^(%a+) (.*)$')
    local later = TIMED[what] and TIMED[what](name)
    if later then
      call('ZADD', expiry, int(later), member)
    else
      over[#over + 1] = member
    end
  end
  write_expired()
  each('ZREM', expiry, over)
end

-- Scheduled and retry jobs whose time has come, the earliest first; of one moment by id.
local function due_jobs()
  local due = {}
  for _, key in ipairs({ scheduled, retry }) do
    local found = call('ZRANGEBYSCORE', key, '-inf', int(now), 'WITHSCORES', 'LIMIT', 0, PROMOTE)
    for i = 1, #found, 2 do
      due[#due + 1] = { found[i], tonumber(found[i + 1]), key }
    end
  end
  table.sort(due, function(a, b)
    return a[2] < b[2] or a[2] == b[2] and a[1] < b[1]
  end)
  again = again or #due >= PROMOTE
  return due
end

-- The lane of each job; only a queue with several lanes has to read records for it. May know fewer
-- than it was asked for, after about 1 MiB read.
local function priorities_of(due)
  local priorities = {}
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
  lanes = know_lanes(lanes, lists)
  for priority, list in pairs(lists) do
    push('LPUSH', priority, list)
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

local function reclaim_due()
  local ids = due_in(active, RECLAIM)
  if #ids == 0 then
    return 0
  end
  local limit, window = tonumber(settings[7]) or 3, tonumber(settings[8]) or DAY
  local gone, back, known = reclaim(ids, limit, window, end_job, lanes)
  lanes = known
  forget_failures(gone)
  unfinished = unfinished - #gone
  to_pending = to_pending + back
  return #ids - #gone
end

-- Whether the record is of a job that was enqueued after this ending: somebody's hand had deleted
-- the record that ended, and its id was free.
local function is_newer(id, ending)
  local record = call('HGET', jobs, id) or ''
  read = read + #record
  local at, ended_at = match(record, '^at=(%d+) '), match(ending, '^%S+ (%d+) ')
  return at and ended_at and #ended_at == #at and ended_at < at
end

local function evict_these(key, ids)
  if #ids == 0 then
    return 0
  end
  local over, looked = {}, {}
  for i, text in ipairs(call('HMGET', endings, unpack(ids))) do
    if read >= MAX_READ then
      again = true
      break
    end
    looked[#looked + 1] = ids[i]
    if not (text and is_newer(ids[i], text)) then
      over[#over + 1] = ids[i]
      record_goes(ids[i], text or '')
    end
  end
  if #looked == 0 then
    return 0
  end
  write_remembered()
  seen_pairs, seen_ends = {}, {}
  each('HDEL', jobs, over)
  forget_failures(over)
  call('HDEL', endings, unpack(looked))
  call('HDEL', results, unpack(looked))
  call('ZREM', key, unpack(looked))
  return #over
end

local function evict()
  local evicted = 0
  for _, key in ipairs({ completed, archived, cancelled, quarantined }) do
    evicted = evicted + evict_these(key, due_in(key, EVICT))
  end
  if settings[9] then
    local beyond = math.min(call('ZCARD', archived) - (tonumber(settings[9]) or math.huge), EVICT)
    if beyond > 0 then
      again = again or beyond == EVICT
      evicted = evicted + evict_these(archived, call('ZRANGE', archived, 0, beyond - 1))
    end
  end
  return evicted
end

-- Once a day: counters of days more than 90 days ago are forgotten.
local function forget_days()
  if settings[10] == today() or not settings[6] then
    return
  end
  local oldest, old = day_of(now - 90 * 86400000), {}
  for _, name in ipairs(call('HKEYS', stats)) do
    if sub(name, 1, 10) < oldest then
      old[#old + 1] = name
    end
  end
  each('HDEL', stats, old)
  call('HSET', meta, 'stats_day', today())
end

-- Lease and holder are made and ended together. Where they differ, somebody's hand was at work: a
-- job with one and not the other gets an expired lease, so that it is reclaimed.
local function mend_leases()
  local more = call('HLEN', holder) - call('ZCARD', active)
  if more == 0 then
    return
  end
  local cursor = match(settings[4] or '', '^%d+$')
  cursor = cursor and #cursor < 20 and cursor or '0'
  local scan, key, look_up, other = 'HSCAN', holder, 'ZMSCORE', active
  if more < 0 then
    scan, key, look_up, other = 'ZSCAN', active, 'HMGET', holder
  end
  local found, leases = call(scan, key, cursor, 'COUNT', MEND), {}
  for i = 1, #found[2], 2 do
    local id = found[2][i]
    if not call(look_up, other, id)[1] then
      leases[#leases + 1], leases[#leases + 2] = int(now), id
    end
  end
  each('ZADD', active, leases)
  call('HSET', meta, 'mend', found[1])
end

local COUNTED = {
  { 'tried', tries }, { 'crashes', crashes }, { 'remembered', seen }, { 'quarantined', quarantine },
}

-- Counters are right by themselves, unless a script died half-way or somebody's hand was at work.
-- What they count is known at once: where they differ, they are set right. How many entries are stale
-- is not: but each name in `ghosts` tells of one at least, and without entries none is.
local function mend_counters()
  local entries, counted = 0, 0
  for priority in gmatch(lanes, '%d') do
    entries = entries + call('LLEN', lane(priority))
  end
  for _, key in ipairs({ scheduled, active, retry }) do
    counted = counted + call('ZCARD', key)
  end
  local names, stale = call('HLEN', ghosts), tonumber(settings[5]) or 0
  if entries == 0 and names > 0 then
    call('UNLINK', ghosts)
    names = 0
  end
  local right = names == 0 and 0 or math.min(math.max(stale, names), entries)
  if settings[6] and (settings[5] or '0') ~= int(right) then
    call('HSET', meta, 'ghosts', int(right))
    some_ghosts = right > 0
  end
  counted = entries + counted - right
  if settings[6] and settings[6] ~= int(counted) then
    call('HSET', meta, 'unfinished', int(counted))
  end
  for i, counter in ipairs(settings[6] and COUNTED or {}) do
    local held = int(call('HLEN', counter[2]))
    if (settings[10 + i] or '0') ~= held then
      call('HSET', meta, counter[1], held)
    end
  end
end

open_writes()
local swept_at = tonumber(settings[2]) or 0
local gate_open = now < swept_at or now - swept_at >= 1000
local thorough = ARGV[1] == 'now' or ARGV[1] == 'shared' and gate_open
if thorough then
  mend_leases()
  mend_counters()
  work_off_timers()
end
local full = again
again = false
local promoted, reclaimed, evicted = promote(), 0, 0
local promote_again = again
again = full
local first_due = earliest_due() or math.huge
if thorough then
  reclaimed = reclaim_due()
  evicted = evict()
  forget_days()
  count_ended('expired')
  count_ended('quarantined')
  -- A queue that nobody has made stays unmade.
  if not again and settings[6] then
    call('HSET', meta, 'swept_at', int(now))
  end
end
again = again or promote_again
if unfinished ~= 0 then
  call('HINCRBY', meta, 'unfinished', unfinished)
end
local next_due = earliest_due()
if to_pending > 0 or next_due and next_due < first_due then
  leave_wake()
end
local claimable = -(tonumber(call('HGET', meta, 'ghosts')) or 0)
for priority in gmatch(settings[3] and '' or lanes, '%d') do
  claimable = claimable + call('LLEN', lane(priority))
end
next_due = next_due and math.max(next_due - now, 0) or -1
tell_ended()
return {
  again and 1 or 0, promoted, reclaimed, ended_counts.quarantined or 0, ended_counts.expired or 0,
  evicted, claimable > 0 and 1 or 0, next_due, unpack(told),
}
