-- claim: takes pending jobs, higher lanes first, oldest first, and makes lease and fence.
-- KEYS: answers expiry jobs meta wake active holder tries ghosts archived endings pending:0..9
-- ARGV: caller seq budget, worker, count, lease (ms)
-- Reply: array: fence, lease's end (ms), more (0|1), array of index and `<attempt> <crash>` for
--        jobs that failed before, then id and record per job. A repeat hands over what is still
--        held under that fence, its lease renewed, and claims nothing
-- Cost: 13 commands a call in one lane, none per job (HMGET in slices of 16 and more)
-- Uses: clock repeats text chunks wake lanes
local answers, expiry, jobs, meta, wake, active, holder, tries, ghosts, archived,
  endings = unpack(KEYS)

-- A call looks at so many entries and reads about so many bytes, then it says `more`.
local MAX_LOOKED, MAX_READ = 1000, 1048576
local ARCHIVED_RETENTION = 90 * 86400000
local worker, count, lease_ends = ARGV[4], tonumber(ARGV[5]), now + tonumber(ARGV[6])
local settings = call('HMGET', meta, 'paused', 'fence', 'ghosts', 'tried', 'lanes')

-- Attempts and crashes of those that failed before, by place in `ids`.
local function counts_of(ids)
  return tonumber(settings[4] or 0) > 0 and #ids > 0 and call('HMGET', tries, unpack(ids)) or {}
end

local function hand_over(fence, more, ids, records, counts)
  local tried = {}
  for i = 1, #counts do
    if counts[i] then
      tried[#tried + 1], tried[#tried + 2] = i - 1, counts[i]
    end
  end
  local reply = { fence, lease_ends, more, tried }
  for i = 1, #ids do
    reply[3 + 2 * i], reply[4 + 2 * i] = ids[i], records[i]
  end
  return reply
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
  if #ids == 0 then
    return hand_over(fence, tonumber(more), {}, {}, {})
  end
  call('HDEL', holder, '')
  each('ZADD', active, leases)
  return hand_over(fence, tonumber(more), ids, call('HMGET', jobs, unpack(ids)), counts_of(ids))
end

-- What settling and reclaim need of the header, cut out as one piece; nil if the record is broken.
local function settling_part(record)
  if sub(record, 18, 20) == 'fp=' and sub(record, 53, 58) == ' kind=' then
    return sub(record, 18, 52)
  end
  return match(record, '^at=%d+ (fp=%x+[^\n]-) kind=')
end

local ids, records, settling = {}, {}, {}
local looked, read, slice, gone, broken = 0, 0, 16, 0, {}
local ghosts_used, ghost_left, trims = 0, {}, {}

local function is_ghost(priority, id)
  if tonumber(settings[3] or 0) <= 0 then
    return false
  end
  local name = priority .. ':' .. id
  local left = ghost_left[name] or tonumber(call('HGET', ghosts, name) or 0)
  if left <= 0 then
    return false
  end
  ghost_left[name] = left - 1
  ghosts_used = ghosts_used + 1
  return true
end

local function judge(priority, id, record)
  if is_ghost(priority, id) then
    return
  end
  if not record then
    gone = gone + 1
    return
  end
  read = read + #record
  local part = settling_part(record)
  if part then
    ids[#ids + 1], records[#records + 1], settling[#settling + 1] = id, record, part
  else
    broken[#broken + 1] = id
  end
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
    if took > 0 then
      local found = call('HMGET', jobs, unpack(batch))
      for i = 1, took do
        judge(priority, batch[i], found[i])
      end
    end
    used, looked = used + took, looked + took
    -- The rest in one go if its records are as large as those seen, within the bound.
    slice = math.max(1, math.floor((MAX_READ - read) / math.max(read / looked, 256)))
  end
  if used > 0 then
    trims[#trims + 1] = { key, used }
  end
  return length > want
end

local lanes, left = settings[5] or '4', false
if not settings[1] then
  for priority in gmatch(lanes, '%d') do
    left = look(priority) or left
  end
end

-- Entries of jobs that are active already, or twice in this call: dropped and no longer counted.
local function drop_second_entries()
  local held, first = call('HMGET', holder, unpack(ids)), {}
  local kept_ids, kept_records, kept_parts = {}, {}, {}
  for i, id in ipairs(ids) do
    if not held[i] and not first[id] then
      first[id] = true
      kept_ids[#kept_ids + 1], kept_records[#kept_records + 1] = id, records[i]
      kept_parts[#kept_parts + 1] = settling[i]
    end
  end
  ids, records, settling = kept_ids, kept_records, kept_parts
end

local fence, counts = '0', {}
-- Allowed when memory is full, and so is then all that follows.
call('HDEL', holder, '')
if #ids > 0 then
  local leases, ends = {}, int(lease_ends)
  for i = 1, #ids do
    leases[2 * i - 1], leases[2 * i] = ends, ids[i]
  end
  local added = 0
  for from = 1, #leases, 1000 do
    local to = math.min(from + 999, #leases)
    added = added + call('ZADD', active, 'NX', unpack(leases, from, to))
  end
  if added < #ids then
    gone = gone + #ids - added
    drop_second_entries()
  end
end
if #ids > 0 then
  fence, counts = int(math.max((settings[2] or 0) + 1, now_us)), counts_of(ids)
  local prefix, entries = fence .. ' ' .. worker .. ' ', {}
  for i = 1, #ids do
    local tried = counts[i] and ' tried=1' or ''
    entries[2 * i - 1], entries[2 * i] = ids[i], prefix .. settling[i] .. tried
  end
  each('HSET', holder, entries)
  call('HSET', meta, 'fence', fence)
end
for _, id in ipairs(broken) do
  call('ZADD', archived, int(now + ARCHIVED_RETENTION), id)
  call('HSET', endings, id, 'undecodable ' .. int(now) .. ' ' .. worker)
end
for _, trim in ipairs(trims) do
  call('LTRIM', trim[1], 0, -(trim[2] + 1))
end
if gone + #broken > 0 then
  call('HINCRBY', meta, 'unfinished', -(gone + #broken))
end
if ghosts_used > 0 then
  for name, unused in pairs(ghost_left) do
    if unused > 0 then
      call('HSET', ghosts, name, int(unused))
    else
      call('HDEL', ghosts, name)
    end
  end
  call('HINCRBY', meta, 'ghosts', -ghosts_used)
end

-- Wake-ups chain: a claim that leaves claimable jobs leaves a token for the next worker.
-- Where ghosts are left, what a lane holds may be nothing else.
if left and tonumber(settings[3] or 0) > 0 then
  local entries = ghosts_used - settings[3]
  for priority in gmatch(lanes, '%d') do
    entries = entries + call('LLEN', lane(priority))
  end
  left = entries > 0
end
if left then
  leave_wake()
end
local more = left and #ids < count and 1 or 0
keep(fence .. ' ' .. more .. ' ' .. table.concat(ids, ' '))
return hand_over(fence, more, ids, records, counts)
