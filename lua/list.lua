-- list: a slice of the jobs of a state, without payloads.
-- KEYS: jobs meta scheduled retry active completed archived cancelled quarantined ghosts pending:0..9
-- ARGV: state, kind ('' all), cursor ('' at first), how many at most
-- Reply: array: next cursor ('' at the end), then per job: id, time ('' pending), header line
-- Cost: 3 commands a slice, one per job looked at: at most 1,000, ghosts too, or about 1 MiB read
-- Uses: clock text lanes ghosts
local jobs, meta, scheduled, retry, active, completed, archived, cancelled, quarantined,
  ghosts = unpack(KEYS)

local MAX_LOOKED, MAX_READ = 1000, 1048576
local ZSETS = {
  scheduled = scheduled, retry = retry, active = active, completed = completed,
  archived = archived, cancelled = cancelled, quarantined = quarantined,
}
local kind, most, read, looked = ARGV[2], tonumber(ARGV[4]), 0, 0
local reply = { '' }

local function is_full()
  return (#reply - 1) / 3 >= most or looked >= MAX_LOOKED or read >= MAX_READ
end

local function show(id, at)
  looked = looked + 1
  local record = call('HGET', jobs, id)
  if not record then
    return
  end
  read = read + #record
  -- With its end, if it has one: without, it is no record, and the reader says so.
  local header = match(record, '^[^\n]*\n?')
  if kind == '' or field(header, 'kind') == kind then
    reply[#reply + 1], reply[#reply + 2], reply[#reply + 3] = id, at, header
  end
end

-- By time, then id, as they stand in the sorted set; the cursor is `<time> <id>` of the last one.
local function list_by_time(key)
  local last_time, last_id = match(ARGV[3], '^(%S+) (%S+)$')
  local rank, pass_over = 0, nil
  if last_id then
    local score = call('ZSCORE', key, last_id)
    if score == last_time then
      rank = call('ZRANK', key, last_id) + 1
    else
      -- It left meanwhile: go on behind where it stood.
      rank, pass_over = call('ZCOUNT', key, '-inf', '(' .. last_time), last_id
    end
  end
  while not is_full() do
    local found = call('ZRANGE', key, rank, rank + 99, 'WITHSCORES')
    for i = 1, #found, 2 do
      local id, at = found[i], found[i + 1]
      if not pass_over or at ~= last_time or id > pass_over then
        show(id, at)
      end
      if is_full() then
        reply[1] = at .. ' ' .. id
        return
      end
    end
    if #found < 200 then
      return
    end
    rank = rank + 100
  end
end

-- In the order of the lanes; the cursor is `<lane> <entries passed>`.
local function list_pending()
  local at_lane, passed = match(ARGV[3], '^(%d) (%d+)$')
  at_lane, passed = tonumber(at_lane) or 9, tonumber(passed) or 0
  local some_ghosts = (tonumber(call('HGET', meta, 'ghosts')) or 0) > 0
  for priority = at_lane, 0, -1 do
    local length = 100
    while length == 100 do
      local entries = call('LRANGE', lane(priority), -(passed + 100), -(passed + 1))
      local ids, tokens = {}, {}
      length = #entries
      for i = 1, length do
        ids[i], tokens[i] = id_of(entries[length + 1 - i])
      end
      local texts = some_ghosts and ghosts_of(priority, ids) or {}
      for i = 1, length do
        local stale, live = stale_and_token(texts[i])
        passed = passed + 1
        if stale and live ~= tokens[i] then
          looked = looked + 1
        else
          show(ids[i], '')
        end
        if is_full() then
          reply[1] = priority .. ' ' .. int(passed)
          return
        end
      end
    end
    passed = 0
  end
end

if ARGV[1] == 'pending' then
  list_pending()
else
  list_by_time(ZSETS[ARGV[1]])
end
return reply
