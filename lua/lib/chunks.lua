-- A variadic command on a list, at most 1,000 arguments at a time (`unpack` has a limit).
-- Answers the sum of the integers that the command answered.
local function each(command, key, list)
  local length = #list
  if length == 0 then
    return 0
  end
  if length <= 1000 then
    return call(command, key, unpack(list))
  end
  local sum = 0
  for from = 1, length, 1000 do
    sum = sum + call(command, key, unpack(list, from, math.min(from + 999, length)))
  end
  return sum
end
