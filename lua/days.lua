-- days: a queue's counters of the last days, today first.
-- KEYS: stats
-- ARGV: how many days, then the names of the counters
-- Reply: array: per day its name and its counters
-- Cost: 1 command a call, one per day
-- Uses: clock day
local stats = unpack(KEYS)

local reply, names = {}, {}
for i = 2, #ARGV do
  names[i - 1] = ARGV[i]
end
for back = 0, tonumber(ARGV[1]) - 1 do
  local day, fields = day_of(now - back * 86400000), {}
  for i, name in ipairs(names) do
    fields[i] = day .. ':' .. name
  end
  reply[#reply + 1] = day
  for _, counted in ipairs(call('HMGET', stats, unpack(fields))) do
    reply[#reply + 1] = tonumber(counted or 0)
  end
end
return reply
