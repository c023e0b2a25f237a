-- The ten lanes are the last ten keys. `meta.lanes` names the priorities that the queue has seen,
-- higher first; it never shrinks, so that every unfinished job's lane is among them. Broken by
-- somebody's hand it means all.
local function known_lanes(text)
  local ordered = text and text ~= '' and string.match(text, '^9?8?7?6?5?4?3?2?1?0?$')
  return ordered or text and '9876543210' or '4'
end

-- A lane is known before anything stands in it: that of each priority in `lists`. Answers the lanes
-- that are known then.
local function know_lanes(known, lists)
  local all = {}
  for priority = 9, 0, -1 do
    if lists[priority] or string.find(known, priority, 1, true) then
      all[#all + 1] = priority
    end
  end
  all = table.concat(all)
  if all ~= known then
    call('HSET', meta, 'lanes', all)
  end
  return all
end

local function lane(priority)
  return KEYS[#KEYS - 9 + priority]
end
