-- Ghosts: entries of a lane to be skipped, counted by lane and id, so that removing an id from the
-- middle of a list is never O(n). Entries of (lane, id) = ghosts + (1 if pending there).
local function add_ghosts(priority, id, count)
  call('HINCRBY', ghosts, priority .. ':' .. id, count)
  call('HINCRBY', meta, 'ghosts', count)
end
