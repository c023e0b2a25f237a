-- set: changes settings of a queue; makes it if need be.
-- KEYS: answers expiry meta wake
-- ARGV: caller seq budget, then per setting: its name in `meta`, value ('' none)
-- Reply: text: remark MADE; 1 OK
-- Cost: 6 commands, two per setting
-- Uses: clock repeats outcomes wake
local answers, expiry, meta, wake = unpack(KEYS)

if kept then
  return kept
end
local made = not call('HGET', meta, 'unfinished')
-- Allowed when memory is full, and so is then all that follows. In order: of a setting that is given
-- twice the last value holds.
call('HDEL', meta, '')
for i = 4, #ARGV, 2 do
  if ARGV[i + 1] ~= '' then
    call('HSET', meta, ARGV[i], ARGV[i + 1])
  else
    call('HDEL', meta, ARGV[i])
  end
end
if made then
  call('HSET', meta, 'unfinished', 0)
  remark('MADE')
end
-- Resumed, or with more room: there may be something to do.
if not (ARGV[4] == 'paused' and ARGV[5] == '1' and #ARGV == 5) then
  leave_wake()
end
outcome('OK')
return keep(outcomes())
