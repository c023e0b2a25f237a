-- When the next scheduled or retry job is due, or nil.
local function earliest_due()
  local first = call('ZRANGE', scheduled, 0, 0, 'WITHSCORES')[2]
  local second = call('ZRANGE', retry, 0, 0, 'WITHSCORES')[2]
  first, second = tonumber(first), tonumber(second)
  return first and second and math.min(first, second) or first or second
end
