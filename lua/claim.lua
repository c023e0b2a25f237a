-- claim: takes pending jobs, higher lanes first, oldest first, and makes lease and fence.
-- KEYS: answers expiry jobs meta wake active holder tries ghosts archived endings pending:0..9
-- ARGV: caller seq budget, worker, count, lease (ms)
-- Reply: array: fence, lease's end (ms), more (0|1), array of index and `<attempt> <crash>` for
--        jobs that failed before, then id and record per job. A repeat hands over what is still
--        held under that fence, its lease renewed, and claims nothing
-- Cost: 10 commands a call in one lane, none per job (HMGET in slices of 16 and more)
-- Uses: clock repeats text chunks wake lanes
local answers, expiry, jobs, meta, wake, active, holder, tries, ghosts, archived,
  endings = unpack(KEYS)

-- A call looks at so many entries and reads about so many bytes, then it says `more`.
local MAX_LOOKED, MAX_READ = 1000, 1048576
local ARCHIVED_RETENTION = 90 * 86400000
local worker, count, lease_ends = ARGV[4], tonumber(ARGV[5]), now + tonumber(ARGV[6])
local settings = call('HMGET', meta, 'paused', 'fence', 'ghosts', 'tried', 'lanes')

local function hand_over(fence, more, ids, records)
  local tried = {}
  if tonumber(settings[4] or 0) > 0 and #ids > 0 then
    for i, counts in ipairs(call('HMGET', tries, unpack(ids))) do
      if counts then
        tried[#tried + 1], tried[#tried + 2] = i - 1, counts
      end
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
      leases[#leases + 1], leases[#leases + 2] = lease_ends, id
    end
  end
  if #ids == 0 then
    return hand_over(fence, tonumber(more), {}, {})
  end
  call('HDEL', holder, '')
  each('ZADD', active, leases)
  return hand_over(fence, tonumber(more), ids, call('HMGET', jobs, unpack(ids)))
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

-- Peeks into a lane from its right end; what was judged is trimmed when all is written.
local function look(priority)
  local key, used = lane(priority), 0
  while #ids < count and not at_bound() do
    local want = math.min(count - #ids, MAX_LOOKED - looked, slice)
    local entries = call('LRANGE', key, -(used + want), -(used + 1))
    local length, batch = #entries, {}
    for i = 1, length do
      batch[i] = entries[length + 1 - i]
    end
    if length > 0 then
      local found = call('HMGET', jobs, unpack(batch))
      for i = 1, length do
        judge(priority, batch[i], found[i])
      end
    end
    used, looked = used + length, looked + length
    if length < want then
      break
    end
    -- The rest in one go if its records are as large as those seen, within the bound.
    slice = math.max(1, math.floor((MAX_READ - read) / math.max(read / looked, 256)))
  end
  if used > 0 then
    trims[#trims + 1] = { key, used }
  end
end

local lanes = settings[5] or '4'
if not settings[1] then
  for priority in gmatch(lanes, '%d') do
    look(priority)
  end
end

local filled = #ids == count

-- Entries of jobs that are held already, or twice in this call: dropped and no longer counted.
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
  gone = gone + #ids - #kept_ids
  ids, records, settling = kept_ids, kept_records, kept_parts
end

local fence = '0'
-- Allowed when memory is full, and so is then all that follows.
call('HDEL', holder, '')
if #ids > 0 then
  local leases = {}
  for i = 1, #ids do
    leases[2 * i - 1], leases[2 * i] = lease_ends, ids[i]
  end
  local added = 0
  for from = 1, #leases, 1000 do
    local to = math.min(from + 999, #leases)
    added = added + call('ZADD', active, 'NX', unpack(leases, from, to))
  end
  if added < #ids then
    drop_second_entries()
  end
end
if #ids > 0 then
  fence = string.format('%.0f', math.max(tonumber(settings[2] or 0) + 1, now_us))
  local prefix, entries = fence .. ' ' .. worker .. ' ', {}
  for i = 1, #ids do
    entries[2 * i - 1], entries[2 * i] = ids[i], prefix .. settling[i]
  end
  each('HSET', holder, entries)
  call('HSET', meta, 'fence', fence)
end
for _, id in ipairs(broken) do
  call('ZADD', archived, now + ARCHIVED_RETENTION, id)
  call('HSET', endings, id, 'undecodable ' .. now .. ' ' .. worker)
end
for _, trim in ipairs(trims) do
  call('LTRIM', trim[1], 0, -(trim[2] + 1))
end
if gone + #broken > 0 then
  call('HINCRBY', meta, 'unfinished', -(gone + #broken))
end
if ghosts_used > 0 then
  for name, left in pairs(ghost_left) do
    if left > 0 then
      call('HSET', ghosts, name, left)
    else
      call('HDEL', ghosts, name)
    end
  end
  call('HINCRBY', meta, 'ghosts', -ghosts_used)
end

-- Wake-ups chain: a claim that leaves claimable jobs leaves a token for the next worker.
local left = false
if filled or at_bound() then
  local entries = ghosts_used - tonumber(settings[3] or 0)
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
return hand_over(fence, more, ids, records)
