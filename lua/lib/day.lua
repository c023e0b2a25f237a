-- The day of a time in ms, `yyyy-mm-dd` in UTC. Source: Howard Hinnant, "chrono-Compatible Low-Level Date
-- Algorithms", civil_from_days.
local function day_of(at)
  local floor = math.floor
  local z = floor(at / 86400000) + 719468
  local era = floor(z / 146097)
  local doe = z - era * 146097
  local yoe = floor((doe - floor(doe / 1460) + floor(doe / 36524) - floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + floor(yoe / 4) - floor(yoe / 100))
  local mp = floor((5 * doy + 2) / 153)
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + era * 400 + (month <= 2 and 1 or 0)
  return string.format('%04d-%02d-%02d', year, month, doy - floor((153 * mp + 2) / 5) + 1)
end

local function today()
  return day_of(now)
end
