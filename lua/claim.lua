-- claim: takes pending jobs, higher lanes first, oldest first, and makes lease and fence.
-- KEYS: answers expiry jobs meta wake active holder pending:4
-- RARE KEYS: answers expiry jobs meta wake active holder tries ghosts archived quarantined endings unique quarantine stats pending:0..9
-- ARGV: caller seq budget, worker, count, lease (ms)
-- Reply: array: fence, lease's end (ms), more (0|1), array of notes, then id and record per job.
--        Notes: index (an integer) and `<attempt> <crash>` of a job that failed before; id and
--        reason of one that the claim met and ended, told at most once. A repeat hands over what is
--        still held under that fence, its lease renewed, and claims nothing; RARE
-- Cost: 12 commands a call (two more if it leaves a wake token), none per job; one more for an
--       empty one of a queue of which nothing was ever claimed
-- Uses: clock repeats chunks wake hold
-- Rare uses: text lanes ghosts day publish ended finish
local answers, expiry, jobs, meta, wake, active, holder, tries, ghosts, archived, quarantined,
  endings, unique, quarantine, stats = unpack(KEYS)

local count, lease_ends = tonumber(ARGV[5]), now + ARGV[6]
local settings = call('HMGET', meta, 'paused', 'fence', 'ghosts', 'tried', 'lanes', 'quarantined')

-- Keeps what was claimed and answers with it. `notes` has those that ended.
local function hand_over(fence, more, ids, records, counts, notes)
  for i = 1, #ids do
    if counts[i] then
      notes[#notes + 1], notes[#notes + 2] = i - 1, counts[i]
    end
  end
  local reply = { fence, lease_ends, more, notes }
  for i = 1, #ids do
    reply[3 + 2 * i], reply[4 + 2 * i] = ids[i], records[i]
  end
  if not kept then
    keep_after(#ids > 0 or settings[2], fence .. ' ' .. more .. ' ' .. table.concat(ids, ' '))
  end
  return reply
end

-- The first 16 records tell whether the rest can be read at once.
local function read_small(ids)
  local first = math.min(#ids, 16)
  local records, size = call('HMGET', jobs, unpack(ids, 1, first)), 0
  for i = 1, first do
    size = size + #(records[i] or '')
  end
  if #ids == first then
    return records
  end
  local rest = size <= 65536 and call('HMGET', jobs, unpack(ids, 17)) or {}
  for i = 1, #rest do
    records[16 + i] = rest[i]
  end
  return records
end

-- The usual call: one lane, no ghosts, nothing that failed before, small and plain records only.
local function claim_usual()
  local key, settling = KEYS[8], {}
  local entries = call('LRANGE', key, -(count + 1), -1)
  local length, ids = #entries, {}
  for i = 1, math.min(length, count) do
    ids[i] = entries[length + 1 - i]
  end
  local records = #ids > 0 and read_small(ids) or {}
  for i = 1, #ids do
    local record = records[i]
    local plain = record and string.sub(record, 18, 20) == 'fp='
    if not plain or string.sub(record, 53, 58) ~= ' kind=' then
      return redis.status_reply('RARE')
    end
    settling[i] = string.sub(record, 18, 52)
  end
  local fence, dropped, taken = '0', 0, #ids
  -- Allowed when memory is full, and so is then all that follows.
  call('HDEL', holder, '')
  if taken > 0 then
    fence, dropped = hold(ids, records, settling, {}, settings[2], lease_ends)
    call('LTRIM', key, 0, -(taken + 1))
  end
  if dropped > 0 then
    call('HINCRBY', meta, 'unfinished', -dropped)
  end
  if length > count then
    leave_wake()
  end
  return hand_over(fence, length > count and #ids < count and 1 or 0, ids, records, {}, {})
end

local function is_none(number)
  return not number or number == '0'
end

local function is_usual()
  local all_healthy = is_none(settings[3]) and is_none(settings[4]) and is_none(settings[6])
  local one_lane = not settings[5] or settings[5] == '4'
  return all_healthy and one_lane and not settings[1] and not kept and count <= 64
end
if #KEYS == 8 then
  return is_usual() and claim_usual() or redis.status_reply('RARE')
end
-- RARE PARTS

-- A call looks at so many entries and reads about so many bytes, then it says `more`.
local MAX_LOOKED, MAX_READ = 1000, 1048576

-- Attempts and crashes of those that failed before, by place in `ids`.
local function counts_of(ids)
  return (tonumber(settings[4]) or 0) > 0 and #ids > 0 and call('HMGET', tries, unpack(ids)) or {}
end

if kept then
  local fence, more, list = match(kept, '^(%d+) (%d) ?(.*)$')
  local handed, ids, leases = {}, {}, {}
  for id in gmatch(list, '%S+') do
    handed[#handed + 1] = id
  end
  local entries = #handed > 0 and call('HMGET', holder, unpack(handed)) or {}
  for i, id in ipairs(handed) do
    if entries[i] and sub(entries[i], 1, #fence + 1) == fence .. ' ' then
      ids[#ids + 1] = id
      leases[#leases + 1], leases[#leases + 2] = int(lease_ends), id
    end
  end
  local records = {}
  if #ids > 0 then
    call('HDEL', holder, '')
    each('ZADD', active, leases)
    records = call('HMGET', jobs, unpack(ids))
  end
  return hand_over(fence, tonumber(more), ids, records, counts_of(ids), {})
end

-- What settling and reclaim need of the header, cut out as one piece; nil if the record is broken.
local function settling_part(record)
  if sub(record, 18, 20) == 'fp=' and sub(record, 53, 58) == ' kind=' then
    return sub(record, 18, 52)
  end
  return match(record, '^at=%d+ (fp=%x+[^\n]-) kind=')
end

local ids, records, settling = {}, {}, {}
local looked, judged, read, slice, gone = 0, 0, 0, 16, 0
-- Id and reason of the jobs that are not to run any more.
local ended = {}
local some_ghosts, trims = (tonumber(settings[3]) or 0) > 0, {}
-- By lane and id what `ghosts` will hold, false if nothing; how many entries were stale; the names
-- of which nothing is left.
local ghosts_met, ghosts_used, ghosts_over = {}, 0, {}

-- Whether an entry is stale. With the last stale one what is left is live, whatever its form.
local function is_stale(name, text, token)
  local met = ghosts_met[name]
  if met == nil then
    local stale, live = stale_and_token(text)
    met = stale and { stale = stale, live = live }
    ghosts_met[name] = met or false
  end
  if not met then
    return false
  end
  met.changed = true
  if met.live == token then
    met.live = '-'
    return false
  end
  met.stale, ghosts_used = met.stale - 1, ghosts_used + 1
  if met.stale == 0 then
    ghosts_met[name] = false
    ghosts_over[#ghosts_over + 1] = name
  end
  return true
end

-- The ids of those of a lane's entries that are live, as they come.
local function live_ones(priority, entries)
  local named, entry_tokens, live = {}, {}, {}
  for i = 1, #entries do
    named[i], entry_tokens[i] = id_of(entries[i])
  end
  if not some_ghosts then
    return named
  end
  local texts, names = ghosts_of(priority, named)
  for i = 1, #named do
    if not is_stale(names[i], texts[i], entry_tokens[i]) then
      live[#live + 1] = named[i]
    end
  end
  return live
end

local function end_instead(state, id, part, reason)
  ended[#ended + 1], ended[#ended + 2] = id, reason
  finish(state, id, part, reason, '-')
end

local function judge(id, record)
  if not record then
    gone = gone + 1
    return
  end
  read = read + #record
  local part = settling_part(record)
  if not part then
    return end_instead('archived', id, '', 'undecodable')
  end
  local deadline = tonumber(field(part, 'deadline'))
  if deadline and deadline <= now then
    return end_instead('archived', id, ' ' .. part, 'expired')
  end
  if not is_none(settings[6]) and call('HEXISTS', quarantine, sub(part, 4, 35)) == 1 then
    return end_instead('quarantined', id, ' ' .. part, 'quarantined')
  end
  -- A debounced job's key is held until here: what comes now starts the next job.
  if field(part, 'unique_mode') and find(part, ' unique_mode=debounce:', 1, true) then
    tokens[#tokens + 1], owners[#owners + 1] = field(part, 'unique'), id
  end
  ids[#ids + 1], records[#records + 1], settling[#settling + 1] = id, record, part
end

local function at_bound()
  return looked >= MAX_LOOKED or read >= MAX_READ
end

-- Peeks into a lane from its right end, one entry further than it takes; what was judged is
-- trimmed when all is written. Answers whether the lane holds more.
local function look(priority)
  local key, used, length, want = lane(priority), 0, 1, 0
  while length > want and #ids < count and not at_bound() do
    want = math.min(count - #ids, MAX_LOOKED - looked, slice)
    local entries, batch = call('LRANGE', key, -(used + want + 1), -(used + 1)), {}
    length = #entries
    local took = math.min(length, want)
    for i = 1, took do
      batch[i] = entries[length + 1 - i]
    end
    local live = live_ones(priority, batch)
    local found = #live > 0 and call('HMGET', jobs, unpack(live)) or {}
    for i = 1, #live do
      judge(live[i], found[i])
    end
    used, looked, judged = used + took, looked + took, judged + #live
    -- The rest in one go if its records are as large as those seen, within the bound.
    if judged > 0 then
      slice = math.max(1, math.floor((MAX_READ - read) / math.max(read / judged, 256)))
    end
  end
  if used > 0 then
    trims[#trims + 1] = { key, used }
  end
  return length > want
end

local lanes, left = known_lanes(settings[5]), false
if not settings[1] then
  for priority in gmatch(lanes, '%d') do
    left = look(priority) or left
  end
end

local fence, counts = '0', counts_of(ids)
-- Allowed when memory is full, and so is then all that follows.
call('HDEL', holder, '')
if #ids > 0 then
  local dropped
  fence, dropped = hold(ids, records, settling, counts, settings[2], lease_ends)
  gone = gone + dropped
end
write_finished({ archived = archived, quarantined = quarantined })
for _, trim in ipairs(trims) do
  call('LTRIM', trim[1], 0, -(trim[2] + 1))
end
-- When their entries are gone: a stale one that is not told of would run.
local ghosts_left = {}
for name, met in pairs(ghosts_met) do
  if met and met.changed then
    ghosts_left[#ghosts_left + 1] = name
    ghosts_left[#ghosts_left + 1] = int(met.stale) .. ' ' .. met.live
  end
end
each('HSET', ghosts, ghosts_left)
each('HDEL', ghosts, ghosts_over)
if ghosts_used > 0 then
  call('HINCRBY', meta, 'ghosts', -ghosts_used)
end
if gone + #ended > 0 then
  call('HINCRBY', meta, 'unfinished', -(gone + #ended / 2))
  count_ended('expired')
  count_ended('quarantined')
end

-- Wake-ups chain: a claim that leaves claimable jobs leaves a token for the next worker.
-- Where ghosts are left, what a lane holds may be nothing else.
if left and some_ghosts then
  local entries = ghosts_used - settings[3]
  for priority in gmatch(lanes, '%d') do
    entries = entries + call('LLEN', lane(priority))
  end
  left = entries > 0
end
if left then
  leave_wake()
end
tell_ended()
return hand_over(fence, left and #ids < count and 1 or 0, ids, records, counts, ended)
