-- The wake token: at most one, on which idle workers block. It means "look", never the truth.
local function leave_wake()
  if call('EXISTS', wake) == 0 then
    call('LPUSH', wake, 1)
  end
end
