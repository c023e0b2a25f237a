-- wake: puts a wake token back that its taker cannot use.
-- KEYS: wake
-- ARGV: none
-- Reply: status OK
-- Cost: 4 commands
-- Uses: clock wake
local wake = KEYS[1]

-- Allowed when memory is full, and so is then the token.
call('LTRIM', wake, 0, 0)
leave_wake()
return redis.status_reply('OK')
