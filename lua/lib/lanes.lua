-- The ten lanes are the last ten keys. `meta.lanes` names the priorities that the queue has seen,
-- higher first; it never shrinks, so that every unfinished job's lane is among them. Broken by
-- somebody's hand it means all.
local function known_lanes(text)
  local ordered = text and text ~= '' and string.match(text, '^9?8?7?6?5?4?3?2?1?0?$')
  return ordered or text and '9876543210' or '4'
end

local function lane(priority)
  return KEYS[#KEYS - 9 + priority]
end
