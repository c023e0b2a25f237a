-- A job that waits again may have passed its deadline while it ran, when its timer was put off to
-- the end of its lease: the timer is due at the deadline again. `entries`: of its holder, by place.
local function watch_deadlines(ids, entries)
  local timers = {}
  for i = 1, #ids do
    local deadline = field(entries[i], 'deadline')
    if deadline then
      timers[#timers + 1], timers[#timers + 2] = deadline, 'deadline ' .. ids[i]
    end
  end
  each('ZADD', expiry, timers)
end
