-- The clock: Redis' own, read once a call. Nobody else's clock decides anything.
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local now_us = time[1] * 1000000 + time[2]
