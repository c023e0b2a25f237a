-- The clock of the tests: ms in a key that they set, in place of lib/clock.lua.
local call = redis.call
local now = tonumber(call('GET', string.match(KEYS[1], '^.*:') .. 'clock'))
local now_us = now * 1000
