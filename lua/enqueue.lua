-- enqueue: admits jobs, one by one or all or nothing, judged in order, seeing earlier ones.
-- KEYS: answers expiry jobs meta wake pending:4
-- RARE KEYS: answers expiry jobs meta wake scheduled retry active completed archived cancelled quarantined unique pending:0..9
-- ARGV: caller seq budget, each|atomic, then per job: id, due ('' now, '+ms', or ms), record
-- Reply: text: n PENDING | n SCHEDULED | 1 EXISTING state | 1 CONFLICT | 1 DUPLICATE id replaced
--        | 1 BACKPRESSURE limit current incoming | 1 INVALID; remarks MADE, REFUSED [index]; RARE
-- Cost: 9 commands a call (one more for a new caller), none per job; options add to it
-- Uses: clock repeats text chunks wake
-- Rare uses: outcomes lanes due state
local answers, expiry, jobs, meta, wake, scheduled, retry, active, completed, archived, cancelled,
  quarantined, unique = unpack(KEYS)

if kept then
  return kept
end
local full = #KEYS > 6
local atomic = ARGV[4] == 'atomic'
local settings = call('HMGET', meta, 'unfinished', 'limit', 'lanes')
local made, current, limit = not settings[1], tonumber(settings[1]) or 0, tonumber(settings[2])
local stamp = 'at=' .. int(now) .. ' '

local ids, count = {}, (#ARGV - 4) / 3
for i = 1, count do
  ids[i] = ARGV[2 + i * 3]
end
local found = call('HMGET', jobs, unpack(ids))

-- Without fields that concern the script and due now: nothing but `fp` stands before `kind`.
local function is_plain(record, due)
  return due == '' and sub(record, 1, 3) == 'fp=' and sub(record, 36, 41) == ' kind='
end

-- The usual call has new and plain jobs only, and room for all of them.
if not full then
  local fits = not limit or current + count <= limit
  local usual, records, seen = fits and (not settings[3] or find(settings[3], '4', 1, true)), {}, {}
  for i = 1, count do
    local id, record = ids[i], ARGV[4 + i * 3]
    usual = usual and not found[i] and not seen[id] and is_plain(record, ARGV[3 + i * 3])
    seen[id] = true
    records[2 * i - 1], records[2 * i] = id, stamp .. record
  end
  if not usual then
    return redis.status_reply('RARE')
  end
  call('LPUSH', KEYS[6], unpack(ids))
  each('HSET', jobs, records)
  call('HINCRBY', meta, 'unfinished', int(count))
  leave_wake()
  return keep(int(count) .. (made and ' PENDING\n0 MADE' or ' PENDING'))
end

-- RARE PARTS

local function due_at(due)
  if due == '' then
    return now
  end
  if sub(due, 1, 1) == '+' then
    return now + tonumber(sub(due, 2))
  end
  return tonumber(due)
end

-- What this call has admitted so far: id to its place in the call, and what is to be written.
local admitted, incoming, keys_taken, refusal = {}, 0, {}, nil
local lists, later, records, keys = {}, {}, {}, {}

local function offence(i, word, details)
  if atomic then
    refusal = { i - 1, word, details }
  elseif details then
    detailed(word, details)
  else
    outcome(word)
  end
end

local function admit(i, due, priority, token)
  if limit and not atomic and current + incoming + 1 > limit then
    return offence(i, 'BACKPRESSURE', limit .. ' ' .. current + incoming .. ' 1')
  end
  local id, record = ids[i], ARGV[4 + i * 3]
  local list = lists[priority] or {}
  lists[priority] = list
  if due > now then
    local header_end = find(record, '\n', 1, true)
    record = sub(record, 1, header_end - 1) .. ' run_at=' .. int(due) .. sub(record, header_end)
    later[#later + 1], later[#later + 2] = int(due), id
    outcome('SCHEDULED')
  else
    list[#list + 1] = id
    outcome('PENDING')
  end
  if token then
    keys_taken[token] = id
    keys[#keys + 1], keys[#keys + 2] = token, id
  end
  admitted[id], incoming = i, incoming + 1
  records[#records + 1], records[#records + 2] = id, stamp .. record
end

-- The id names a job already, of an earlier call or of this one.
local function meet(i, fp)
  local first = admitted[ids[i]]
  if fp ~= (first and sub(ARGV[4 + first * 3], 4, 35) or match(found[i], '^at=%d+ fp=(%x+)')) then
    return offence(i, 'CONFLICT')
  end
  local state = first and due_at(ARGV[3 + first * 3]) > now and 'SCHEDULED'
  detailed('EXISTING', state or not first and place_of(ids[i]) or 'PENDING')
end

-- The unfinished holder of a unique key, or nil if the key is free.
local function holder_of(token)
  if keys_taken[token] then
    return keys_taken[token]
  end
  local id = call('HGET', unique, token)
  if id and call('HEXISTS', jobs, id) == 1 and not is_finished(place_of(id)) then
    return id
  end
end

local function judge(i)
  local head = match(ARGV[4 + i * 3], '^(fp=%x+[^\n]-) kind=%S+[^\n]*\n')
  local due = due_at(ARGV[3 + i * 3])
  if not due or not head or not find(sub(head, 36, 36), '^ ?$') then
    return offence(i, 'INVALID')
  end
  if found[i] or admitted[ids[i]] then
    return meet(i, sub(head, 4, 35))
  end
  local token = field(head, 'unique')
  local holder = token and holder_of(token)
  if holder then
    return offence(i, 'DUPLICATE', holder .. ' 0')
  end
  admit(i, due, tonumber(match(head .. ' ', ' priority=(%d) ')) or 4, token)
end

for i = 1, count do
  local known = found[i] or admitted[ids[i]]
  if not known and is_plain(ARGV[4 + i * 3], ARGV[3 + i * 3]) then
    admit(i, now, 4)
  else
    judge(i)
  end
  if refusal then
    return keep('0 REFUSED ' .. refusal[1] .. '\n1 ' .. refusal[2] .. ' ' .. (refusal[3] or ''))
  end
end
if atomic and limit and incoming > 0 and current + incoming > limit then
  return keep('0 REFUSED\n1 BACKPRESSURE ' .. limit .. ' ' .. current .. ' ' .. incoming)
end

local function write_lanes()
  local lanes = made and not settings[3] and '' or known_lanes(settings[3])
  local seen = {}
  for priority = 9, 0, -1 do
    local list = lists[priority]
    if list then
      each('LPUSH', lane(priority), list)
    end
    if list or find(lanes, priority, 1, true) then
      seen[#seen + 1] = priority
    end
  end
  return table.concat(seen)
end

-- Places before records: a script that dies between the two leaves entries that claim skips, not
-- records that nobody runs.
if incoming > 0 then
  local first_due = #later > 0 and earliest_due() or math.huge
  local lanes, earlier = write_lanes(), #later < 2 * incoming
  for i = 1, #later, 2 do
    earlier = earlier or tonumber(later[i]) < first_due
  end
  each('ZADD', scheduled, later)
  each('HSET', jobs, records)
  each('HSET', unique, keys)
  call('HINCRBY', meta, 'unfinished', incoming)
  if lanes ~= (settings[3] or '4') then
    call('HSET', meta, 'lanes', lanes)
  end
  if earlier then
    leave_wake()
  end
  if made then
    remark('MADE')
  end
end
return keep(outcomes())
