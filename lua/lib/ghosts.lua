-- Ghosts: entries of a lane to be skipped, counted by lane and id, so that removing an id from the
-- middle of a list is never O(n). Entries of (lane, id) = ghosts + (1 if pending there).
local function add_ghosts(priority, id, count)
  call('HINCRBY', ghosts, priority .. ':' .. id, count)
  call('HINCRBY', meta, 'ghosts', count)
end

-- With g older entries of it in the lane to be skipped, the first g entries met are skipped: so
-- g + 1 are pushed, and g more are to be skipped.
local function push_front(priority, id)
  local older = tonumber(call('HGET', ghosts, priority .. ':' .. id) or 0)
  for _ = 0, older do
    call('RPUSH', lane(priority), id)
  end
  if older > 0 then
    add_ghosts(priority, id, older)
  end
end
