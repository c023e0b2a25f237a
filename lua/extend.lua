-- extend: lets leases end later. A lease that ran out but was not reclaimed still counts.
-- KEYS: active holder
-- ARGV: lease (ms), then per job: id fence
-- Reply: text: n OK | n STALE
-- Cost: 4 commands a call, none per job. Repeats by nature: no caller
-- Uses: clock text chunks held outcomes
local active, holder = unpack(KEYS)

local ids, fences, leases = {}, {}, {}
for i = 2, #ARGV, 2 do
  ids[#ids + 1], fences[#fences + 1] = ARGV[i], ARGV[i + 1]
end
local lease_ends = int(now + ARGV[1])
for i, entry in ipairs(holders(ids, fences)) do
  if entry then
    leases[#leases + 1], leases[#leases + 2] = lease_ends, ids[i]
    outcome('OK')
  else
    outcome('STALE')
  end
end
if #leases > 0 then
  open_writes()
  each('ZADD', active, leases)
end
return outcomes()
