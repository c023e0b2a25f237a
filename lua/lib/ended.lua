-- Tells those who wait for jobs which ones ended, by state or `deleted`: a message a state.
-- `meta.watched` is until when somebody waits; `watched` is what a read of `meta` found there, nil
-- before there was one.
local watched
local ended_ids = {}

local function has_ended(state, id)
  local ids = ended_ids[state] or {}
  ended_ids[state] = ids
  ids[#ids + 1] = id
end

-- When the jobs are written.
local function tell_ended()
  if not next(ended_ids) then
    return
  end
  if watched == nil then
    watched = call('HGET', meta, 'watched')
  end
  if (tonumber(watched) or 0) <= now then
    return
  end
  for state, ids in pairs(ended_ids) do
    publish('done', 'ended ' .. queue_name .. ' ' .. state .. ' ' .. table.concat(ids, ' '))
  end
end
