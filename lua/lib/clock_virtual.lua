-- The clock of the tests: ms in a key that they set, in place of lib/clock.lua. A script dies at the
-- write that another key counts down to.
local call, format = redis.call, string.format
local tests = string.match(KEYS[1], '^.*:')
local now, dies = tonumber(call('GET', tests .. 'clock')), call('GET', tests .. 'dies')
local now_us = now * 1000
local function int(number)
  return format('%d', number)
end
if dies then
  local left, commands = tonumber(dies), redis.call
  local WRITES = {
    HDEL = 1, HINCRBY = 1, HSET = 1, LPUSH = 1, LTRIM = 1, RPUSH = 1, UNLINK = 1, ZADD = 1,
    ZREM = 1,
  }
  call = function(command, ...)
    left = left - (WRITES[command] or 0)
    if left == 0 then
      error('dies here')
    end
    return commands(command, ...)
  end
end
