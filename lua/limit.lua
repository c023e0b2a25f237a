-- limit: sets or lifts the limit of unfinished jobs; makes the queue if need be.
-- KEYS: answers expiry meta wake
-- ARGV: caller seq budget, limit ('' none)
-- Reply: text: 1 OK; remark MADE
-- Cost: 6 commands
-- Uses: clock repeats outcomes wake
local answers, expiry, meta, wake = unpack(KEYS)

if kept then
  return kept
end
local made = not call('HGET', meta, 'unfinished')
call('HDEL', meta, 'limit')
if ARGV[4] ~= '' then
  call('HSET', meta, 'limit', ARGV[4])
end
if made then
  call('HSET', meta, 'unfinished', 0)
  remark('MADE')
end
leave_wake()
outcome('OK')
return keep(outcomes())
