-- watch_ends: somebody waits for jobs of the queue: until then their ends are published. A queue
-- that nobody has made has none.
-- KEYS: meta
-- ARGV: for how long (ms)
-- Reply: status OK
-- Cost: 4 commands. Repeats by nature: no caller
-- Uses: clock
local meta = unpack(KEYS)

local found, ends = call('HMGET', meta, 'unfinished', 'watched'), now + ARGV[1]
-- Allowed when memory is full, and so is then all that follows.
call('HDEL', meta, '')
if found[1] and (tonumber(found[2]) or 0) < ends then
  call('HSET', meta, 'watched', int(ends))
end
return redis.status_reply('OK')
