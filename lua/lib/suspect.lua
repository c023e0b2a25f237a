-- What examine and repair look at: where jobs stand, and which entries of a lane are live.
local PLACES = {
  { 'scheduled', scheduled }, { 'retry', retry }, { 'active', active }, { 'completed', completed },
  { 'archived', archived }, { 'cancelled', cancelled }, { 'quarantined', quarantined },
}
local FINISHED = { completed = true, archived = true, cancelled = true, quarantined = true }

-- Of each id the names of the sorted sets that have it.
local function sets_of(ids)
  local sets = {}
  for i = 1, #ids do
    sets[i] = {}
  end
  for _, place in ipairs(#ids > 0 and PLACES or {}) do
    local scores = call('ZMSCORE', place[2], unpack(ids))
    for i = 1, #ids do
      if scores[i] then
        table.insert(sets[i], place[1])
      end
    end
  end
  return sets
end

-- What scripts read of a header; nil if it is none of a record.
local function settling_part_of(head)
  return match(head or '', '^at=%d+( fp=%x+[^\n]-) kind=%S+[^\n]*\n')
end

local function head_of(record)
  return match(record, '^[^\n]*\n?')
end

-- The ids of entries, and which of them are live, as far as `ghosts` tells.
local function live_of(priority, entries)
  local named, live, bear = {}, {}, {}
  for i = 1, #entries do
    named[i], bear[i] = id_of(entries[i])
  end
  local texts = #entries > 0 and ghosts_of(priority, named) or {}
  for i = 1, #entries do
    local stale, token = stale_and_token(texts[i])
    live[i] = not stale or token == bear[i]
  end
  return named, live, texts
end

-- Whether this entry is in its lane, live, within so many entries right of where it stood: what
-- comes shifts it.
local function stands_at(priority, entry, from, most)
  for _, other in ipairs(call('LRANGE', lane(priority), from, from + most - 1)) do
    if other == entry then
      local _, live = live_of(priority, { entry })
      return live[1]
    end
  end
  return false
end

-- Those of the ids that are live among the outermost entries of a lane: what came since somebody
-- walked along it.
local function near_ends(ids, most)
  local asked, near = {}, {}
  for i = 1, #ids do
    asked[ids[i]] = true
  end
  for priority = 0, 9 do
    for _, range in ipairs({ { 0, most - 1 }, { -most, -1 } }) do
      local entries = {}
      for _, entry in ipairs(call('LRANGE', lane(priority), range[1], range[2])) do
        if asked[id_of(entry)] then
          entries[#entries + 1] = entry
        end
      end
      local named, live = live_of(priority, entries)
      for i = 1, #named do
        near[named[i]] = near[named[i]] or live[i]
      end
    end
  end
  return near
end

-- Both entries are there and live: id, then priority and entry of each. Of two that are the same
-- text the lane must have two.
local MAX_SOUGHT = 100000
local function stands_twice(one, one_entry, other, other_entry)
  local _, first = live_of(one, { one_entry })
  local _, second = live_of(other, { other_entry })
  if not first[1] or not second[1] then
    return false
  end
  local same = one == other and one_entry == other_entry
  local found = call('LPOS', lane(one), one_entry, 'COUNT', same and 2 or 1, 'MAXLEN', MAX_SOUGHT)
  if same or #found == 0 then
    return #found == 2
  end
  return #call('LPOS', lane(other), other_entry, 'COUNT', 1, 'MAXLEN', MAX_SOUGHT) == 1
end

-- The job's own key: only one that is held until its end; a debounced one may have let it go.
local function own_key(settling)
  return settling and not field(settling, 'unique_mode') and field(settling, 'unique')
end

-- Whether a key is held by a job that may hold it.
local function key_is_owned(token, value)
  local id, mode = match(value, '^(%S+) ?(%S*)')
  if not id then
    return false
  elseif mode == 'throttle' then
    return match(value, ' throttle %d+$') and call('ZSCORE', expiry, 'unique ' .. token)
  end
  local held_by = holder_of(token)
  return held_by == id and not (mode == 'debounce' and call('ZSCORE', active, id))
end

-- The jobs that the keys count as unfinished.
local function true_unfinished(stale)
  local sum = -stale
  for priority = 0, 9 do
    sum = sum + call('LLEN', lane(priority))
  end
  return sum + call('ZCARD', scheduled) + call('ZCARD', retry) + call('ZCARD', active)
end

-- The sum of stale entries, if there are few enough names to add up at once.
local MAX_NAMES = 5000
local function sum_of_stale()
  if call('HLEN', ghosts) > MAX_NAMES then
    return nil
  end
  local sum = 0
  for _, text in ipairs(call('HVALS', ghosts)) do
    sum = sum + (stale_and_token(text) or 0)
  end
  return sum
end

local COUNTERS = {
  { 'tried', tries }, { 'crashes', crashes }, { 'remembered', seen }, { 'quarantined', quarantine },
}

-- The lanes that hold something, or are known already; higher first.
local function lanes_needed(known)
  local needed = {}
  for priority = 9, 0, -1 do
    if find(known, priority, 1, true) or call('EXISTS', lane(priority)) == 1 then
      needed[#needed + 1] = priority
    end
  end
  return table.concat(needed)
end

local function is_holder(entry)
  return entry and match(entry, '^%d+ %S+ fp=')
end

-- Whether HINCRBY takes the text, and no step of it is lost.
local function is_whole(text)
  return text and match(text, '^%-?%d+$') and #text < 16 and int(tonumber(text)) == text
end

-- Whether a job may have the id.
local function is_id(id)
  return #id <= 128 and match(id, '^[!-~]+$')
end

-- Whether a text tells of attempts and crashes.
local function is_tries(text)
  local attempt, crash = match(text, '^(%d+) (%d+)$')
  return attempt and #attempt < 10 and #crash < 10
end
