-- Jobs that end but are kept: gathered by `finish`, written by `write_finished`. `settling` is what
-- settling needs of a header: a holder's entry, or the header from ` fp=` up to `kind`. `tell_ended`
-- comes last.
local DAY = 86400000
local KEPT = { completed = 0, archived = 90 * DAY, cancelled = 7 * DAY, quarantined = 90 * DAY }
local settings_kept, ends_at, ending_texts, ended_counts = {}, {}, {}, {}
local tokens, owners, deadlines = {}, {}, {}

-- Frees the job's unique key when all is written.
local function free_unique(id, settling)
  local token = field(settling, 'unique')
  if token then
    tokens[#tokens + 1], owners[#owners + 1] = token, id
  end
  if field(settling, 'deadline') then
    deadlines[#deadlines + 1] = 'deadline ' .. id
  end
end

-- For how long a job is kept: a completed one for its own retention or else the queue's, others
-- for the queue's, or their own if it is longer.
local function kept_for(state, settling)
  local own = tonumber(field(settling, 'retention'))
  if settings_kept[state] == nil then
    local found = call('HMGET', meta, 'retain_' .. state, 'watched')
    settings_kept[state], watched = tonumber(found[1]) or KEPT[state], found[2]
  end
  if state == 'completed' then
    return own or settings_kept.completed
  end
  return math.max(own or 0, settings_kept[state])
end

-- `endings` also holds what is needed once more: the fingerprint of a quarantined job, and the
-- first content of one whose identity is to outlive its record.
local function finish(state, id, settling, reason, worker)
  local list = ends_at[state] or {}
  ends_at[state] = list
  list[#list + 1], list[#list + 2] = int(now + kept_for(state, settling)), id
  local text = reason .. ' ' .. int(now) .. ' ' .. worker
  if state == 'quarantined' then
    text = text .. ' fp=' .. field(settling, 'fp')
  end
  local remember = field(settling, 'remember')
  local first = field(settling, 'first') or field(settling, 'fp')
  if remember and first then
    text = text .. ' remember=' .. remember .. ' first=' .. first
  end
  ending_texts[#ending_texts + 1], ending_texts[#ending_texts + 2] = id, text
  ended_counts[reason] = (ended_counts[reason] or 0) + 1
  has_ended(state, id)
  free_unique(id, settling)
end

-- Only the owner's end frees a key; a throttled key ends by time alone.
local function write_freed()
  each('ZREM', expiry, deadlines)
  if #tokens == 0 then
    return
  end
  local freed = {}
  for i = 1, #tokens do
    local held_by = call('HGET', unique, tokens[i])
    if held_by == owners[i] or held_by == owners[i] .. ' debounce' then
      freed[#freed + 1] = tokens[i]
    end
  end
  each('HDEL', unique, freed)
end

-- `places`: the key of each state that the script may end jobs in.
local function write_finished(places)
  for state, list in pairs(ends_at) do
    each('ZADD', places[state], list)
  end
  each('HSET', endings, ending_texts)
  write_freed()
end

local function count_ended(reason)
  if ended_counts[reason] then
    call('HINCRBY', stats, today() .. ':' .. reason, ended_counts[reason])
  end
end
