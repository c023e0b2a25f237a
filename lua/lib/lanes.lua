-- The ten lanes are the last ten keys. `meta.lanes` names the priorities that the queue has seen,
-- higher first; it never shrinks, so that every unfinished job's lane is among them.
local function lane(priority)
  return KEYS[#KEYS - 9 + priority]
end
