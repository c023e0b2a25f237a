-- Ghosts: entries of a lane that are to be skipped, so that removing an id from the middle of a list
-- is never O(n). An entry is the id, or ` <token> <id>` (ids have no space). `ghosts` holds, by lane
-- and id, `<stale> <token>`: where that is, so many entries are stale, and live is only the one with
-- that token (`-`: none). Where it is not, there is at most one entry of that id in that lane, live
-- if the job is pending there, whatever its form. So entries of (lane, id) = stale + (1 if pending
-- there), and `meta.ghosts` is the sum of what is stale.
local function id_of(entry)
  if string.sub(entry, 1, 1) ~= ' ' then
    return entry
  end
  local token, id = string.match(entry, '^ (%d+) (.*)$')
  return id or string.sub(entry, 2), token
end

-- How many are stale and the token; nil if there is nothing, or what somebody's hand has broken.
local function stale_and_token(text)
  local stale, token = string.match(text or '', '^(%d+) (%S+)$')
  if stale and #stale < 16 and tonumber(stale) > 0 then
    return tonumber(stale), token
  end
end

-- What `ghosts` holds of these ids in a lane, by place, and under which names.
local function ghosts_of(priority, listed)
  local texts, names = {}, {}
  for i, id in ipairs(listed) do
    names[i] = priority .. ':' .. id
  end
  for from = 1, #names, 1000 do
    local slice = call('HMGET', ghosts, unpack(names, from, math.min(from + 999, #names)))
    for i = 1, #slice do
      texts[from + i - 1] = slice[i]
    end
  end
  return texts, names
end
