-- Messages to those who listen: sent when the jobs are written. A channel is no key: its name is
-- made of one. A PUBLISH that is refused (no permission) changes nothing: a message may be lost
-- anyway, and who listens looks by himself, only later.
local namespace, queue_name = match(meta, '^(.-):{(.-)}')

local function publish(channel, text)
  redis.pcall('PUBLISH', namespace .. ':' .. channel, text)
end
