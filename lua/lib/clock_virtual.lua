-- The clock of the tests: ms in a key that they set, in place of lib/clock.lua.
local call, format = redis.call, string.format
local now = tonumber(call('GET', string.match(KEYS[1], '^.*:') .. 'clock'))
local now_us = now * 1000
local function int(number)
  return format('%d', number)
end
