-- quarantine: an operator closes a fingerprint to enqueue and claim; makes the queue if need be.
-- KEYS: answers expiry meta quarantine
-- ARGV: caller seq budget, fingerprint, ' reason=<percent-encoded>' or ''
-- Reply: text: 1 CHANGED | 1 UNCHANGED; remark MADE
-- Cost: 8 commands
-- Uses: clock repeats outcomes
local answers, expiry, meta, quarantine = unpack(KEYS)

if kept then
  return kept
end
local made = not call('HGET', meta, 'unfinished')
local closed = call('HEXISTS', quarantine, ARGV[4]) == 1
call('HDEL', quarantine, '')
if closed then
  outcome('UNCHANGED')
else
  -- Counted first: an entry that does not count would close nothing.
  call('HINCRBY', meta, 'quarantined', 1)
  call('HSET', quarantine, ARGV[4], 'since=' .. int(now) .. ' crashes=0' .. ARGV[5])
  outcome('CHANGED')
end
if made then
  call('HSET', meta, 'unfinished', 0)
  remark('MADE')
end
return keep(outcomes())
