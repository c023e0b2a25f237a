-- sweep: does a slice of what time has made due. Promotes always; reclaims, evicts, mends and drops
-- idle callers about once a second per queue, or if told to.
-- KEYS: answers expiry jobs meta active holder scheduled retry completed archived cancelled quarantined tries errors endings results wake progress unique seen ghosts quarantine crashes stats pending:0..9
-- ARGV: promote|shared|now, jitter (0 to 1)
-- Reply: array of integers: again (0|1: a slice was full), promoted, reclaimed, quarantined,
--        expired, evicted, claimable (0|1), ms until the next job is due (-1 none); then id and
--        reason per job that expired or was quarantined
-- Cost: 10 commands a call with nothing to do, 28 about once a
-- second; a slice touches at most 200 jobs. Repeats by nature
-- Uses: clock text chunks held release wake lanes due failures tries state ghosts day publish ended finish remember
local answers, expiry, jobs, meta, active, holder, scheduled, retry, completed, archived, cancelled,
  quarantined, tries, errors, endings, results, wake, progress, unique, seen, ghosts, quarantine,
  crashes, stats = unpack(KEYS)

local PROMOTE, RECLAIM, EVICT, TIMERS, MEND, MAX_READ = 90, 20, 10, 40, 100, 1048576
local TEN_YEARS = 3650 * 86400000
local settings = call('HMGET', meta, 'lanes', 'swept_at', 'paused', 'mend', 'ghosts',
  'unfinished', 'crash_limit', 'crash_window', 'max_archived', 'stats_day',
  'tried', 'crashes', 'remembered', 'quarantined')
local lanes = known_lanes(settings[1])
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
      add_ghosts(job[3], job[2], 1)
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

-- Crashes of a fingerprint: `<count> <end of window, ms> <last that counted, µs>`. One death is one
-- crash: a lease counts only if it was claimed after the last one. Answers whether the fingerprint
-- is in quarantine now.
local crashed, closed, closing = {}, {}, {}

local function count_crash(fp, fence, id, worker)
  local window = tonumber(settings[8]) or 86400000
  if closed[fp] == nil then
    closed[fp] = call('HEXISTS', quarantine, fp) == 1
    local count, ends, last = match(call('HGET', crashes, fp) or '', '^(%d+) (%d+) (%d+)$')
    crashed[fp] = { tonumber(count) or 0, tonumber(ends) or 0, tonumber(last) or 0 }
  end
  local entry = crashed[fp]
  if entry[2] <= now then
    entry[1], entry[2], entry[3] = 0, now + window, 0
  end
  if fence > entry[3] then
    entry[1], entry[3], entry.counted = entry[1] + 1, now_us, true
  end
  if not closed[fp] and entry[1] >= (tonumber(settings[7]) or 3) then
    local line = 'since=' .. int(now) .. ' crashes=' .. entry[1] .. ' window=' .. int(window)
    closed[fp] = true
    closing[#closing + 1] = fp
    closing[#closing + 1] = line .. ' sample=' .. id .. ' worker=' .. worker
  end
  return closed[fp]
end

local function write_crashes()
  for fp, entry in pairs(crashed) do
    if entry.counted then
      local text = int(entry[1]) .. ' ' .. int(entry[2]) .. ' ' .. int(entry[3])
      if call('HSET', crashes, fp, text) == 1 then
        call('HINCRBY', meta, 'crashes', 1)
      end
      call('ZADD', expiry, int(entry[2]), 'crashes ' .. fp)
    end
  end
  if #closing > 0 then
    call('HINCRBY', meta, 'quarantined', each('HSET', quarantine, closing))
  end
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
    local fence, worker = match(entry, '^(%d+) (%S+)')
    new_lines[#new_lines + 1] = id
    new_lines[#new_lines + 1] = failures_with(lines[i], ',"crash":' .. crash, worker, '}')
    local fp, deadline = field(entry, 'fp'), tonumber(field(entry, 'deadline'))
    local is_closed = fp and count_crash(fp, tonumber(fence), id, worker)
    if deadline and deadline <= now then
      end_job('archived', id, entry, 'expired', worker)
    elseif is_closed then
      end_job('quarantined', id, entry, 'quarantined', worker)
    elseif crash == 1 then
      back[#back + 1] = { priority_of(entry), id }
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
  write_crashes()
  keep_tries(new_counts)
  each('HSET', errors, new_lines)
  unfinished = unfinished - #gone
  to_pending = to_pending + #back
  if #ids > #gone then
    call('HINCRBY', stats, today() .. ':crashed', #ids - #gone)
  end
  -- Those that ended are written with the sweep's others, before their leases are let go.
  write_finished({ archived = archived, quarantined = quarantined })
  ends_at, ending_texts, tokens, owners, deadlines = {}, {}, {}, {}, {}
  release_all(ids, entries)
  forget_failures(gone)
  return #ids - #gone
end

local function evict_these(key, ids)
  if #ids == 0 then
    return 0
  end
  for i, text in ipairs(call('HMGET', endings, unpack(ids))) do
    if text then
      record_goes(ids[i], text)
    end
  end
  write_remembered()
  seen_pairs, seen_ends = {}, {}
  call('HDEL', jobs, unpack(ids))
  forget_failures(ids)
  call('HDEL', endings, unpack(ids))
  call('HDEL', results, unpack(ids))
  call('ZREM', key, unpack(ids))
  return #ids
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
-- job with a holder but no lease gets an expired one, so that the next sweep reclaims it. A lease
-- without holder runs out by itself.
local function mend()
  if call('HLEN', holder) == call('ZCARD', active) then
    return
  end
  local cursor = match(settings[4] or '', '^%d+$')
  cursor = cursor and #cursor < 20 and cursor or '0'
  local scan, ids = call('HSCAN', holder, cursor, 'COUNT', MEND), {}
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

local COUNTED = {
  { 'tried', tries }, { 'crashes', crashes }, { 'remembered', seen }, { 'quarantined', quarantine },
}

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
  for i, counter in ipairs(settings[6] and COUNTED or {}) do
    local entries = int(call('HLEN', counter[2]))
    if (settings[10 + i] or '0') ~= entries then
      call('HSET', meta, counter[1], entries)
    end
  end
  if settings[5] and settings[5] ~= '0' and call('HLEN', ghosts) == 0 then
    call('HSET', meta, 'ghosts', 0)
  end
end

open_writes()
local swept_at = tonumber(settings[2]) or 0
local gate_open = now < swept_at or now - swept_at >= 1000
local thorough = ARGV[1] == 'now' or ARGV[1] == 'shared' and gate_open
if thorough then
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
  reclaimed = reclaim()
  evicted = evict()
  mend()
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
