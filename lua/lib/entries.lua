-- Entries come to a lane's ends and leave it from anywhere: see lib/ghosts.lua.
-- Whether `meta` counts ghosts: what a read of it found, nil before there was one.
local some_ghosts

local function are_there_ghosts()
  if some_ghosts == nil then
    some_ghosts = (tonumber(call('HGET', meta, 'ghosts')) or 0) > 0
  end
  return some_ghosts
end

-- The first of so many tokens that no entry of the queue has had.
local function new_tokens(count)
  local last = tonumber(call('HGET', meta, 'entries')) or 0
  last = last >= 0 and last < 2 ^ 52 and math.floor(last) or 0
  call('HSET', meta, 'entries', int(last + count))
  return last + 1
end

-- LPUSH or RPUSH of ids, each of which leaves another place afterwards, or is new. An id with stale
-- entries gets a token. That is told before the entry stands there: a script that dies between the
-- two leaves the job where it was.
local function push(command, priority, coming)
  if #coming == 0 or not are_there_ghosts() then
    each(command, lane(priority), coming)
    return
  end
  local texts, names = ghosts_of(priority, coming)
  local entries, places, fields = {}, {}, {}
  for i, id in ipairs(coming) do
    local stale = stale_and_token(texts[i])
    entries[i] = id
    if stale then
      places[#places + 1] = i
      fields[#fields + 1], fields[#fields + 2] = names[i], int(stale) .. ' '
    end
  end
  local first = #places > 0 and new_tokens(#places)
  for n, i in ipairs(places) do
    local token = int(first + n - 1)
    entries[i], fields[2 * n] = ' ' .. token .. ' ' .. coming[i], fields[2 * n] .. token
  end
  each('HSET', ghosts, fields)
  each(command, lane(priority), entries)
end

-- A pending job leaves its lane, from the middle: its entry stays, and is stale.
local function leave_lane(priority, id)
  local name = priority .. ':' .. id
  local stale, token = stale_and_token(call('HGET', ghosts, name))
  if token == '-' then
    return
  end
  -- In this order: one that is not counted is not looked for.
  call('HINCRBY', meta, 'ghosts', 1)
  call('HSET', ghosts, name, int((stale or 0) + 1) .. ' -')
  some_ghosts = true
end
