-- progress: keeps what a running job says of its progress.
-- KEYS: holder progress
-- ARGV: id, fence, a JSON text
-- Reply: text: 1 OK | 1 STALE
-- Cost: 4 commands. Repeats by nature: no caller
-- Uses: clock text chunks held outcomes
local holder, progress = unpack(KEYS)

local entry = holders({ ARGV[1] }, { ARGV[2] })[1]
if not entry then
  outcome('STALE')
  return outcomes()
end
-- The mark first: without it nobody would forget the text.
if not find(entry, ' progress=1', 1, true) then
  call('HSET', holder, ARGV[1], entry .. ' progress=1')
end
call('HSET', progress, ARGV[1], ARGV[3])
outcome('OK')
return outcomes()
