-- delete_queue: deletes every key of a queue; unless forced, only without unfinished jobs.
-- KEYS: meta answers expiry jobs wake active holder scheduled retry completed archived cancelled quarantined tries errors endings results progress unique seen ghosts quarantine crashes stats pending:0..9
-- ARGV: force (0|1)
-- Reply: text: 1 OK | 1 MISSING | 1 REFUSED unfinished
-- Cost: 3 commands. A repeat finds nothing: no caller
-- Uses: clock outcomes
local meta = unpack(KEYS)

local unfinished = call('HGET', meta, 'unfinished')
if not unfinished then
  outcome('MISSING')
elseif ARGV[1] ~= '1' and tonumber(unfinished) > 0 then
  detailed('REFUSED', unfinished)
  return outcomes()
else
  outcome('OK')
end
call('UNLINK', unpack(KEYS))
return outcomes()
