-- queue: a queue's counters, exact at one moment.
-- KEYS: jobs meta active scheduled retry completed archived cancelled quarantined stats ghosts pending:0..9
-- ARGV: none
-- Reply: array of integers: pending scheduled active retry completed archived cancelled
--        quarantined, unfinished, limit (-1 none), paused (0|1), oldest pending's age in ms (-1
--        none), completed and failed today; MISSING
-- Cost: 10 commands, and 3 per lane in use; up to 100 more where ghosts stand in front
-- Uses: clock text day lanes state
local jobs, meta, active, scheduled, retry, completed, archived, cancelled, quarantined, stats,
  ghosts = unpack(KEYS)

local settings = call('HMGET', meta, 'unfinished', 'limit', 'paused', 'ghosts', 'lanes')
if not settings[1] then
  return redis.status_reply('MISSING')
end
local any_ghosts = (tonumber(settings[4]) or 0) > 0

-- When the job of a record was due.
local function due_since(record)
  local head = string.match(record, '^[^\n]*')
  return tonumber(string.match(head, ' run_at=(%d+)') or string.match(head, '^at=(%d+)'))
end

-- Since when the lane's next job waits. Looks past at most 100 ghosts: then its age is unknown.
local function oldest_in(priority)
  local entries, skip = call('LRANGE', lane(priority), any_ghosts and -100 or -1, -1), {}
  for i = #entries, 1, -1 do
    local id = id_of(entries[i])
    local name = priority .. ':' .. id
    local record = call('HGET', jobs, id)
    skip[id] = skip[id] or any_ghosts and tonumber(call('HGET', ghosts, name)) or 0
    local in_front = id ~= entries[i] and record and not place_of(id)
    if skip[id] > 0 and not in_front then
      skip[id] = skip[id] - 1
    else
      return record and due_since(record)
    end
  end
end

local pending, oldest = -(tonumber(settings[4]) or 0), nil
for priority in string.gmatch(known_lanes(settings[5]), '%d') do
  pending = pending + call('LLEN', lane(priority))
  local since = oldest_in(priority)
  oldest = since and math.min(since, oldest or since) or oldest
end
local reply = { pending }
for _, key in ipairs({ scheduled, active, retry, completed, archived, cancelled, quarantined }) do
  reply[#reply + 1] = call('ZCARD', key)
end
local day = today()
local counted = call('HMGET', stats, day .. ':completed', day .. ':failed')
local rest = {
  tonumber(settings[1]) or 0, tonumber(settings[2]) or -1, settings[3] and 1 or 0,
  oldest and math.max(now - oldest, 0) or -1, tonumber(counted[1]) or 0, tonumber(counted[2]) or 0,
}
for _, value in ipairs(rest) do
  reply[#reply + 1] = value
end
return reply
