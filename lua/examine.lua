-- examine: looks at a slice of what a queue has and tells what is wrong at this moment. Writes
-- nothing.
-- KEYS: answers expiry jobs meta wake active holder scheduled retry completed archived cancelled quarantined tries errors endings results progress unique seen ghosts quarantine crashes stats pending:0..9
-- ARGV: what, cursor (0 at first), about how many; then for some more. What: keys, counters, a lane
--       (0 to 9), a hash or sorted set by its name; placeless, open: to confirm of the ids that
--       follow; twice: id, then priority and entry of two
-- Reply: array: next cursor (0 at the end), bytes read, array of findings (check, id, detail each),
--        array of what else is told: of keys name, type and size; of counters stale entries by
--        `meta` and names in `ghosts`; of a lane each entry and what `ghosts` holds of it; of jobs
--        the unfinished: set, id, header; of ghosts name and text
-- Cost: 20 commands a slice, up to 3 per job looked at: about 100
-- Uses: clock text lanes state unique ghosts suspect
local answers, expiry, jobs, meta, wake, active, holder, scheduled, retry, completed, archived,
  cancelled, quarantined, tries, errors, endings, results, progress, unique, seen, ghosts,
  quarantine, crashes, stats = unpack(KEYS)

local what, cursor, count = ARGV[1], ARGV[2], tonumber(ARGV[3])
local next_cursor, read, findings, told = '0', 0, {}, {}

local function report(check, id, detail)
  local at = #findings
  findings[at + 1], findings[at + 2], findings[at + 3] = check, id, detail or ''
end

local function tell(one, two, three)
  told[#told + 1] = one
  told[#told + 1] = two
  told[#told + 1] = three
end

-- A slice of a hash or sorted set: names and values.
local function slice_of(command, key)
  local page, names, values = call(command, key, cursor, 'COUNT', count), {}, {}
  next_cursor = page[1]
  for i = 1, #page[2], 2 do
    names[#names + 1], values[#values + 1] = page[2][i], page[2][i + 1]
    read = read + #page[2][i] + #page[2][i + 1]
  end
  return names, values
end

local HASH, SET, LIST = 'hash', 'zset', 'list'
local TYPES = {
  { answers, HASH }, { expiry, SET }, { jobs, HASH }, { meta, HASH }, { wake, LIST },
  { active, SET }, { holder, HASH }, { scheduled, SET }, { retry, SET }, { completed, SET },
  { archived, SET }, { cancelled, SET }, { quarantined, SET }, { tries, HASH }, { errors, HASH },
  { endings, HASH }, { results, HASH }, { progress, HASH }, { unique, HASH }, { seen, HASH },
  { ghosts, HASH }, { quarantine, HASH }, { crashes, HASH }, { stats, HASH },
}
for priority = 0, 9 do
  TYPES[#TYPES + 1] = { lane(priority), LIST }
end

local SIZES = { hash = 'HLEN', zset = 'ZCARD', list = 'LLEN' }

-- Types, sizes and times to live of all keys.
local function look_at_keys()
  for _, expected in ipairs(TYPES) do
    local key, found = expected[1], call('TYPE', expected[1]).ok
    local name = match(key, '}:(.*)$')
    if found ~= 'none' then
      local size = found == expected[2] and call(SIZES[found], key) or 0
      tell(name, found, int(size))
      if found ~= expected[2] then
        report('type', name, found)
      elseif key == wake and size > 1 then
        report('wake', name, int(size))
      end
      if call('PTTL', key) >= 0 then
        report('ttl', name, int(call('PTTL', key)))
      end
    end
  end
end

local MOST = 9007199254740992
local YEARS = 315360000000
local SETTINGS = {
  { 'limit', 0, MOST }, { 'paused', 1, 1 }, { 'max_archived', 0, MOST },
  { 'crash_limit', 1, 1000 }, { 'crash_window', 1, YEARS }, { 'retain_completed', 1, YEARS },
  { 'retain_archived', 1, YEARS }, { 'retain_cancelled', 1, YEARS },
  { 'retain_quarantined', 1, YEARS },
}

local function judge_settings()
  for _, setting in ipairs(SETTINGS) do
    local name, least, most = unpack(setting)
    local text = call('HGET', meta, name)
    local number = text and match(text, '^%d+$') and tonumber(text)
    if text and not (number and number >= least and number <= most) then
      report('setting', name, text)
    end
  end
end

local function judge_counters()
  local counted = call('HMGET', meta, 'unfinished', 'ghosts', 'lanes', 'tried', 'crashes',
    'remembered', 'quarantined')
  local stale, summed = counted[2] or '0', sum_of_stale()
  if summed and stale ~= int(summed) then
    report('ghosts', 'ghosts', stale .. ' ' .. int(summed))
  elseif not summed and not is_whole(stale) then
    report('ghosts', 'ghosts', 'none known')
  end
  local truth = true_unfinished(is_whole(stale) and tonumber(stale) or 0)
  if counted[1] ~= int(truth) then
    report('unfinished', 'unfinished', (counted[1] or 'none') .. ' ' .. int(truth))
  end
  for i, counter in ipairs(COUNTERS) do
    local held = int(call('HLEN', counter[2]))
    if (counted[3 + i] or '0') ~= held then
      report('counter', counter[1], (counted[3 + i] or '0') .. ' ' .. held)
    end
  end
  local looked_at = known_lanes(counted[3])
  if lanes_needed(looked_at) ~= looked_at then
    report('lanes', 'lanes', looked_at .. ' ' .. lanes_needed(looked_at))
  end
  tell(stale, int(call('HLEN', ghosts)))
  judge_settings()
end

-- A lane from its left end on: jobs that come meanwhile shift it, so that none is missed.
local function walk_lane(priority)
  local from = tonumber(cursor)
  local entries = call('LRANGE', lane(priority), from, from + count - 1)
  next_cursor = #entries == count and int(from + count) or '0'
  local ids, live, texts = live_of(priority, entries)
  local sets = sets_of(ids)
  for i = 1, #entries do
    tell(entries[i], texts[i] or '')
    read = read + #entries[i]
    local at = priority .. ' ' .. int(from + i - 1) .. ' ' .. entries[i]
    if live[i] and call('HEXISTS', jobs, ids[i]) == 0 then
      report('entry', ids[i], at)
    elseif live[i] and not is_id(ids[i]) then
      report('stray', ids[i], at)
    elseif live[i] and #sets[i] > 0 then
      report('places', ids[i], at)
    end
  end
end

-- The lanes where somebody looks.
local known

local function judge_key(id, settling)
  local token = own_key(settling)
  local value = token and call('HGET', unique, token)
  if token and value ~= id then
    local taken = value and holder_of(token)
    if taken == id then
      report('key_mode', id, value)
    else
      report(taken and 'key_twice' or 'key_missing', id, taken or token)
    end
  end
end

local function judge_lane(settling)
  local priority = settling and priority_of(settling)
  if priority and not find(known, priority, 1, true) then
    report('lanes', 'lanes', known .. ' ' .. priority)
  end
end

local function judge_job(id, head, sets)
  if #sets > 1 then
    report('places', id, '')
  end
  if FINISHED[sets[1]] then
    local ending = call('HGET', endings, id)
    if not ending then
      report('ending', id, sets[1])
    end
    local fp = sets[1] == 'quarantined' and field(ending or '', 'fp')
    if fp and call('HEXISTS', quarantine, fp) == 0 then
      report('open', id, fp)
    end
    return
  end
  local settling = settling_part_of(head)
  tell(sets[1] or '', id, head)
  judge_key(id, settling)
  judge_lane(settling)
  local deadline = settling and field(settling, 'deadline')
  if deadline and not call('ZSCORE', expiry, 'deadline ' .. id) then
    report('timer', 'deadline ' .. id, deadline)
  end
end

local function walk_jobs()
  local ids, records = slice_of('HSCAN', jobs)
  local sets = sets_of(ids)
  known = known_lanes(call('HGET', meta, 'lanes'))
  for i = 1, #ids do
    if is_id(ids[i]) then
      judge_job(ids[i], head_of(records[i]), sets[i])
    else
      report('bad_id', ids[i], jobs)
    end
  end
end

local function walk_set(name, key)
  local ids, scores = slice_of('ZSCAN', key)
  local holders = name == 'active' and #ids > 0 and call('HMGET', holder, unpack(ids))
  for i, id in ipairs(ids) do
    if call('HEXISTS', jobs, id) == 0 then
      report('no_record', id, name)
    elseif not is_id(id) then
      report('stray', id, name)
    elseif holders and tonumber(scores[i]) > now and not is_holder(holders[i]) then
      -- One whose time is up is about to be reclaimed.
      report('no_holder', id, '')
    end
  end
end

local function walk_holder()
  local ids = slice_of('HSCAN', holder)
  for _, id in ipairs(ids) do
    if not call('ZSCORE', active, id) then
      report('no_lease', id, '')
    end
  end
end

local function walk_leftovers(name, key)
  local ids, values = slice_of('HSCAN', key)
  for i, id in ipairs(ids) do
    local there = call('HEXISTS', jobs, id) == 1
    if name == 'progress' then
      there = call('ZSCORE', active, id)
    end
    if not there then
      report('leftover', id, name)
    elseif name == 'tries' and not is_tries(values[i]) then
      report('tries', id, values[i])
    end
  end
end

local function walk_unique()
  local names, values = slice_of('HSCAN', unique)
  for i, token in ipairs(names) do
    if not key_is_owned(token, values[i]) then
      report('key_of_nobody', token, values[i])
    end
  end
end

local ENDS = { seen = ' (%d+)$', crashes = '^%d+ (%d+)', answers = '^%d+ (%d+)' }

local function walk_timed(name, key)
  local names, values = slice_of('HSCAN', key)
  for i, of in ipairs(names) do
    if not call('ZSCORE', expiry, name .. ' ' .. of) then
      report('timer', name .. ' ' .. of, match(values[i], ENDS[name]) or '')
    end
  end
end

local function walk_expiry()
  local members = slice_of('ZSCAN', expiry)
  for _, member in ipairs(members) do
    local kind, of = match(member, '^(%a+) (.*)$')
    if kind == 'deadline' and call('HEXISTS', jobs, of) == 0 or not kind then
      report('timer_of_nobody', member, '')
    end
  end
end

local function walk_ghosts()
  local names, values = slice_of('HSCAN', ghosts)
  for i = 1, #names do
    tell(names[i], values[i])
  end
end

-- Jobs with a record that stand nowhere: in no set, and not where they could have come to since
-- their lanes were walked.
local function confirm_placeless()
  local ids = { unpack(ARGV, 4) }
  local sets, near = sets_of(ids), near_ends(ids, 500)
  for i, id in ipairs(ids) do
    if #sets[i] == 0 and not near[id] and call('HEXISTS', jobs, id) == 1 then
      report('no_place', id, call('HEXISTS', endings, id) == 1 and 'ended' or '')
    end
  end
end

local function confirm_open()
  for i = 4, #ARGV do
    local fp = field(call('HGET', endings, ARGV[i]) or '', 'fp')
    local there = fp and call('ZSCORE', quarantined, ARGV[i])
    if there and call('HEXISTS', quarantine, fp) == 0 then
      report('open', ARGV[i], fp)
    end
  end
end

local function confirm_twice()
  local _, _, _, id, one, one_entry, other, other_entry = unpack(ARGV)
  if stands_twice(one, one_entry, other, other_entry) then
    report('twice', id, one .. ' ' .. other)
  end
end

local SETS = {}
local WALKS = {
  keys = look_at_keys, counters = judge_counters, jobs = walk_jobs, holder = walk_holder,
  unique = walk_unique, expiry = walk_expiry, ghosts = walk_ghosts, open = confirm_open,
  placeless = confirm_placeless, twice = confirm_twice,
}
for _, place in ipairs(PLACES) do
  SETS[place[1]] = function() walk_set(place[1], place[2]) end
end
local OF_JOBS = {
  tries = tries, errors = errors, results = results, endings = endings, progress = progress,
}
for name, key in pairs(OF_JOBS) do
  SETS[name] = function() walk_leftovers(name, key) end
end
for name, key in pairs({ seen = seen, crashes = crashes, answers = answers }) do
  SETS[name] = function() walk_timed(name, key) end
end

local walk = WALKS[what] or SETS[what]
if walk then
  walk()
else
  walk_lane(tonumber(what))
end
return { next_cursor, read, findings, told }
