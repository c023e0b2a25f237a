-- enqueue: admits jobs, one by one or all or nothing, judged in order, seeing earlier ones.
-- KEYS: answers expiry jobs meta wake pending:4
-- RARE KEYS: answers expiry jobs meta wake scheduled retry active completed archived cancelled quarantined unique seen quarantine ghosts pending:0..9
-- ARGV: caller seq budget, each|atomic (and ` durable`: see below), then per job: id, options,
--       record. Options: '' or
--       ` due=<ms>|+<ms>` and ` replace=<field,…>`, each with a space before it
-- Reply: text: n PENDING | n SCHEDULED | 1 EXISTING state|GONE | n CONFLICT | 1 INVALID field
--        | 1 QUARANTINED fingerprint | 1 DUPLICATE id replaced | 1 BACKPRESSURE limit current
--        incoming; remarks MADE, REFUSED [index]; RARE
-- Cost: 9 commands a call (one more for a new caller), none per job; options add to it
-- Uses: clock repeats text chunks wake
-- Rare uses: outcomes lanes due state unique ghosts entries replace
local answers, expiry, jobs, meta, wake, scheduled, retry, active, completed, archived, cancelled,
  quarantined, unique, seen, quarantine, ghosts = unpack(KEYS)

if kept then
  -- WAIT speaks for the writes of its own connection: who asks on another one than before has to
  -- write there, too. The first command is one that a full memory does not forbid.
  if find(ARGV[4], ' durable', 1, true) then
    call('HDEL', answers, '')
    call('HSET', answers, ARGV[1], kept_before)
  end
  return kept
end
local full = #KEYS > 6
local atomic = sub(ARGV[4], 1, 6) == 'atomic'
local settings =
  call('HMGET', meta, 'unfinished', 'limit', 'lanes', 'remembered', 'quarantined', 'ghosts')
local made, current, limit = not settings[1], tonumber(settings[1]) or 0, tonumber(settings[2])
local stamp = 'at=' .. int(now) .. ' '

local ids, jobs_given = {}, (#ARGV - 4) / 3
for i = 1, jobs_given do
  ids[i] = ARGV[2 + i * 3]
end
local found = call('HMGET', jobs, unpack(ids))

-- Without fields that concern the script and due now: nothing but `fp` stands before `kind`. A record
-- that is none besides is found out when it is claimed.
local function is_plain(record, options)
  return options == '' and sub(record, 36, 41) == ' kind='
end

local remembers, closes = (settings[4] or '0') ~= '0', (settings[5] or '0') ~= '0'

-- The usual call has new and plain jobs only, and room for all of them.
if not full then
  local fits = (not limit or current + jobs_given <= limit) and not remembers and not closes
  local usual = fits and (not settings[3] or find(settings[3], '4', 1, true))
  usual = usual and (settings[6] or '0') == '0'
  local records, twice = {}, {}
  for i = 1, jobs_given do
    local id, record = ids[i], ARGV[4 + i * 3]
    usual = usual and not found[i] and not twice[id] and is_plain(record, ARGV[3 + i * 3])
    twice[id] = true
    records[2 * i - 1], records[2 * i] = id, stamp .. record
  end
  if not usual then
    return redis.status_reply('RARE')
  end
  call('LPUSH', KEYS[6], unpack(ids))
  each('HSET', jobs, records)
  call('HINCRBY', meta, 'unfinished', int(jobs_given))
  leave_wake()
  return keep(int(jobs_given) .. (made and ' PENDING\n0 MADE' or ' PENDING'))
end

-- RARE PARTS
-- A limit that is no whole number is none. The usual call lets pass whatever fits, and leaves the
-- rest to this.
limit = limit and match(settings[2], '^%d+$') and limit
some_ghosts = (tonumber(settings[6]) or 0) > 0

-- The part of a header that scripts read; nil if the record is not one.
local function settling_of(record)
  local head = match(record, '^(fp=%x+[^\n]-) kind=%S+[^\n]*\n')
  return head and find(sub(head, 36, 36), '^ ?$') and ' ' .. head or nil
end

local function moment(text)
  return sub(text, 1, 1) == '+' and now + tonumber(sub(text, 2)) or tonumber(text)
end

-- Window and longest wait of a debounced job, or nil.
local function debounce_of(settling)
  local window, wait = match(settling, ' unique_mode=debounce:(%d+):?(%d*)')
  return tonumber(window), tonumber(wait) or math.huge
end

local function due_of(options, settling)
  local window, wait = debounce_of(settling)
  local due = field(options, 'due')
  return window and now + math.min(window, wait) or due and moment(due) or now
end

-- What this call has admitted: id to its place in the call. What is not yet written, and how much
-- of it counts as unfinished.
local admitted, written, incoming, keys_taken, refusal = {}, 0, 0, {}, nil
local lists, later, records, keys, timers = {}, {}, {}, {}, {}
local lanes = made and not settings[3] and '' or known_lanes(settings[3])
local first_due, look = nil, false

local function offence(i, word, details)
  if atomic then
    refusal = { i - 1, word, details }
  elseif details then
    detailed(word, details)
  else
    outcome(word)
  end
end

local function use_lanes()
  lanes = know_lanes(lanes, lists)
end

-- Places before records: a script that dies between the two leaves entries that claim skips, not
-- records that nobody runs.
local function write()
  if incoming == 0 then
    return
  end
  use_lanes()
  for priority, list in pairs(lists) do
    push('LPUSH', priority, list)
  end
  each('ZADD', scheduled, later)
  each('HSET', jobs, records)
  each('HSET', unique, keys)
  each('ZADD', expiry, timers)
  call('HINCRBY', meta, 'unfinished', int(incoming))
  written, incoming = written + incoming, 0
  lists, later, records, keys, timers, keys_taken = {}, {}, {}, {}, {}, {}
end

local function falls_due(due)
  first_due = first_due or earliest_due() or math.huge
  if due < first_due then
    look, first_due = true, due
  end
end

local function take_key(id, token, settling)
  local window = match(settling, ' unique_mode=throttle:(%d+)')
  local value = id
  if window then
    value = id .. ' throttle ' .. int(now + window)
    timers[#timers + 1], timers[#timers + 2] = int(now + window), 'unique ' .. token
  elseif debounce_of(settling) then
    value = id .. ' debounce'
  end
  keys_taken[token] = id
  keys[#keys + 1], keys[#keys + 2] = token, value
end

local function with_run_at(record, due)
  local header_end = find(record, '\n', 1, true)
  return sub(record, 1, header_end - 1) .. ' run_at=' .. int(due) .. sub(record, header_end)
end

local function admit(i, record, due, settling)
  if limit and not atomic and current + written + incoming + 1 > limit then
    return offence(i, 'BACKPRESSURE', settings[2] .. ' ' .. current + written + incoming .. ' 1')
  end
  local id, priority = ids[i], settling and priority_of(settling) or 4
  local list = lists[priority] or {}
  lists[priority] = list
  if due > now then
    falls_due(due)
    record = with_run_at(record, due)
    later[#later + 1], later[#later + 2] = int(due), id
    outcome('SCHEDULED')
  else
    look, list[#list + 1] = true, id
    outcome('PENDING')
  end
  local token = settling and field(settling, 'unique')
  if token then
    take_key(id, token, settling)
  end
  local deadline = settling and field(settling, 'deadline')
  if deadline then
    timers[#timers + 1], timers[#timers + 2] = deadline, 'deadline ' .. id
  end
  admitted[id], incoming = i, incoming + 1
  records[#records + 1], records[#records + 2] = id, stamp .. record
end

-- The id names a job already: of an earlier call, of this one, or one that is only remembered.
local function meet(i, fp)
  local id, first = ids[i], admitted[ids[i]]
  local same, state
  if first then
    same = fp == sub(ARGV[4 + first * 3], 4, 35)
    if atomic then
      local due = due_of(ARGV[3 + first * 3], settling_of(ARGV[4 + first * 3]))
      state = due > now and 'SCHEDULED'
    else
      write()
      state = place_of(id)
    end
  else
    local stored = match(found[i], '^at=%d+( fp=%x+[^\n]-) kind=') or ''
    same = fp == (field(stored, 'first') or field(stored, 'fp'))
    state = place_of(id)
  end
  if not same then
    return offence(i, 'CONFLICT')
  end
  detailed('EXISTING', state or 'PENDING')
end

-- Answers whether the id is remembered.
local function meet_remembered(i, fp)
  local first, ends = match(remembers and call('HGET', seen, ids[i]) or '', '^(%x+) (%d+)$')
  if not first or tonumber(ends) <= now then
    return false
  end
  if first == fp then
    detailed('EXISTING', 'GONE')
  else
    offence(i, 'CONFLICT')
  end
  return true
end

-- Moves a holder whose due time or priority is replaced: the next place first, then out of the one
-- before.
local function move(id, from, due, old_priority, priority)
  -- The jobs admitted before stand before it.
  write()
  if due and due > now then
    falls_due(due)
    call('ZADD', from == 'RETRY' and retry or scheduled, int(due), id)
  elseif from == 'PENDING' and priority == old_priority then
    return
  else
    lists[priority] = lists[priority] or {}
    use_lanes()
    push('LPUSH', priority, { id })
    look = true
  end
  if from == 'PENDING' then
    leave_lane(old_priority, id)
  elseif not (due and due > now) then
    call('ZREM', from == 'RETRY' and retry or scheduled, id)
  end
end

-- Writes the fields asked for into a holder that is not running. Answers whether it did.
local function replace(i, id, holder_mode, settling, record)
  local asked = ',' .. (field(ARGV[3 + i * 3], 'replace') or '') .. ','
  local window, wait = debounce_of(settling)
  if window then
    -- A debounced job's time is its window's.
    asked = string.gsub(asked, ',run_at,', ',')
  end
  local debounced = window and holder_mode == 'debounce'
  local from = place_of(id) or 'PENDING'
  local stored = call('HGET', jobs, id)
  if #asked <= 2 and not debounced or not stored then
    return false
  end
  local header_end = find(stored, '\n', 1, true)
  local head, payload = sub(stored, 1, header_end - 1), sub(stored, header_end + 1)
  local mine_end = find(record, '\n', 1, true)
  local mine = sub(record, 1, mine_end - 1)
  local waits = from == 'PENDING' or from == 'SCHEDULED' or from == 'RETRY'
  local is_holder = field(head, 'unique') == field(settling, 'unique')
  if not waits or not is_holder or field(head, 'kind') ~= field(mine, 'kind') then
    return false
  end
  local old_priority, due = priority_of(head), nil
  local priority = old_priority
  if debounced or find(asked, ',payload,', 1, true) then
    head, payload = head_of_payload(head, mine), sub(record, mine_end + 1)
  end
  if find(asked, ',priority,', 1, true) then
    priority = priority_of(settling)
    head = set_field(head, 'priority', priority ~= 4 and priority or nil)
  end
  if find(asked, ',max_attempts,', 1, true) then
    head = set_field(head, 'max_attempts', field(settling, 'max_attempts'))
  end
  if debounced then
    if from == 'SCHEDULED' then
      due = math.max(now, math.min(now + window, tonumber(match(head, '^at=(%d+)')) + wait))
    end
  elseif find(asked, ',run_at,', 1, true) then
    due = due_of(ARGV[3 + i * 3], '')
  end
  if due then
    head = string.gsub(head, ' run_at=%d+', '') .. (due > now and ' run_at=' .. int(due) or '')
  end
  if due or from == 'PENDING' then
    move(id, from, due, old_priority, priority)
  end
  lists[priority] = lists[priority] or {}
  use_lanes()
  call('HSET', jobs, id, head .. '\n' .. payload)
  return true
end

-- Answers whether the unique key is held.
local function meet_holder(i, token, settling, record)
  local id, mode = keys_taken[token], nil
  if id and not atomic then
    write()
  end
  if not id or not atomic then
    id, mode = holder_of(token)
  end
  if not id then
    return false
  end
  local replaced = not atomic and replace(i, id, mode, settling, record)
  offence(i, 'DUPLICATE', id .. (replaced and ' 1' or ' 0'))
  return true
end

local function judge(i)
  local record = ARGV[4 + i * 3]
  local settling = settling_of(record)
  local due = settling and due_of(ARGV[3 + i * 3], settling)
  if not due then
    return offence(i, 'INVALID', 'record')
  end
  local fp = field(settling, 'fp')
  if found[i] or admitted[ids[i]] then
    return meet(i, fp)
  end
  if meet_remembered(i, fp) then
    return
  end
  local deadline = field(settling, 'deadline')
  if deadline then
    local ends = moment(deadline)
    if ends <= now then
      return offence(i, 'INVALID', 'deadline')
    end
    record = string.gsub(record, ' deadline=%+?%d+', ' deadline=' .. int(ends), 1)
    settling = settling_of(record)
  end
  if closes and call('HEXISTS', quarantine, fp) == 1 then
    return offence(i, 'QUARANTINED', fp)
  end
  local token = field(settling, 'unique')
  if not token or not meet_holder(i, token, settling, record) then
    admit(i, record, due, settling)
  end
end

for i = 1, jobs_given do
  local known = found[i] or admitted[ids[i]] or remembers or closes
  if not known and is_plain(ARGV[4 + i * 3], ARGV[3 + i * 3]) then
    admit(i, ARGV[4 + i * 3], now)
  else
    judge(i)
  end
  if refusal then
    local details = refusal[3] and ' ' .. refusal[3] or ''
    return keep_after(not made, '0 REFUSED ' .. refusal[1] .. '\n1 ' .. refusal[2] .. details)
  end
end
if atomic and limit and incoming > 0 and current + incoming > limit then
  return keep('0 REFUSED\n1 BACKPRESSURE ' .. settings[2] .. ' ' .. current .. ' ' .. incoming)
end
write()
if look then
  leave_wake()
end
if made and written > 0 then
  remark('MADE')
end
return keep_after(written > 0 or not made, outcomes())
