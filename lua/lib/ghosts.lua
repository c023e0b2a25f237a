-- Ghosts: entries of a lane to be skipped, counted by lane and id, so that removing an id from the
-- middle of a list is never O(n). Entries of (lane, id) = ghosts + (1 if pending there).
local function add_ghosts(priority, id, count)
  -- In this order: a ghost that does not count may hide another entry later.
  call('HINCRBY', meta, 'ghosts', count)
  call('HINCRBY', ghosts, priority .. ':' .. id, count)
end

-- An entry at the front of an id that has ghosts in its lane: the first of an id's entries that are
-- met are skipped, and that would be this one. So it is marked by a space in front of the id (ids
-- have none): claim asks where the job is, instead of counting, when it meets such an entry.
local function push_front(priority, id)
  local older = tonumber(call('HGET', ghosts, priority .. ':' .. id)) or 0
  call('RPUSH', lane(priority), older > 0 and ' ' .. id or id)
end
