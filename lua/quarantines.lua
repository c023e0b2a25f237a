-- quarantines: a slice of the fingerprints in quarantine.
-- KEYS: quarantine
-- ARGV: cursor ('0' at first)
-- Reply: array: next cursor ('0' at the end), then fingerprint and header line each
-- Cost: 2 commands
-- Uses: clock
local quarantine = KEYS[1]

local scan = call('HSCAN', quarantine, ARGV[1], 'COUNT', 200)
local reply = { scan[1] }
for i = 1, #scan[2] do
  reply[1 + i] = scan[2][i]
end
return reply
