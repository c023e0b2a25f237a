-- queue: a queue's counters, exact at one moment.
-- KEYS: jobs meta active scheduled retry completed archived cancelled quarantined stats ghosts pending:0..9
-- ARGV: none
-- Reply: array of integers: pending scheduled active retry completed archived cancelled
--        quarantined, unfinished, limit (-1 none), paused (0|1), oldest pending's age in ms (-1
--        none), completed and failed today; MISSING
-- Cost: 10 commands, and 3 per lane in use; two more per 1,000 ghosts in front, of 5,000 at most
-- Uses: clock day lanes ghosts
local jobs, meta, active, scheduled, retry, completed, archived, cancelled, quarantined, stats,
  ghosts = unpack(KEYS)

local settings = call('HMGET', meta, 'unfinished', 'limit', 'paused', 'ghosts', 'lanes')
if not settings[1] then
  return redis.status_reply('MISSING')
end
local some_ghosts, MAX_LOOKED, looked = (tonumber(settings[4]) or 0) > 0, 5000, 0

-- When the job of a record was due.
local function due_since(record)
  local head = string.match(record, '^[^\n]*')
  return tonumber(string.match(head, ' run_at=(%d+)') or string.match(head, '^at=(%d+)'))
end

-- Since when the lane's next job waits. A call looks at 5,000 entries in all, about: what stands
-- behind so many ghosts has no age.
local function oldest_in(priority)
  local passed, want = 0, some_ghosts and 100 or 1
  repeat
    local entries = call('LRANGE', lane(priority), -(passed + want), -(passed + 1))
    local ids, tokens, length = {}, {}, #entries
    for i = 1, length do
      ids[i], tokens[i] = id_of(entries[length + 1 - i])
    end
    local texts = some_ghosts and ghosts_of(priority, ids) or {}
    for i = 1, length do
      local stale, live = stale_and_token(texts[i])
      local record = (not stale or live == tokens[i]) and call('HGET', jobs, ids[i])
      if record then
        return due_since(record)
      end
    end
    local at_end = length < want
    passed, looked, want = passed + length, looked + length, 1000
  until at_end or looked >= MAX_LOOKED
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
-- As enqueue reads it.
local limit = string.match(settings[2] or '', '^%d+$')
local day = today()
local counted = call('HMGET', stats, day .. ':completed', day .. ':failed')
local rest = {
  tonumber(settings[1]) or 0, tonumber(limit) or -1, settings[3] and 1 or 0,
  oldest and math.max(now - oldest, 0) or -1, tonumber(counted[1]) or 0, tonumber(counted[2]) or 0,
}
for _, value in ipairs(rest) do
  reply[#reply + 1] = value
end
return reply
