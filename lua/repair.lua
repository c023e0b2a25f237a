-- repair: mends one thing that examine told of, if it is still so. May run twice.
-- KEYS: answers expiry jobs meta wake active holder scheduled retry completed archived cancelled quarantined tries errors endings results progress unique seen ghosts quarantine crashes stats pending:0..9
-- ARGV: check, id or name, detail, as examine told them; then of some more. twice: the two entries.
--       ghost: what is right. undecodable: its entry's place, or none
-- Reply: text: 1 CHANGED | 1 UNCHANGED
-- Cost: 30 commands at most, but for ttl and counters: 50
-- Uses: clock outcomes text chunks held release wake lanes state unique ghosts entries day publish ended finish tries suspect
local answers, expiry, jobs, meta, wake, active, holder, scheduled, retry, completed, archived,
  cancelled, quarantined, tries, errors, endings, results, progress, unique, seen, ghosts,
  quarantine, crashes, stats = unpack(KEYS)

local id, detail = ARGV[2], ARGV[3]
local HASHES = {
  tries = tries, errors = errors, results = results, endings = endings, progress = progress,
  seen = seen, crashes = crashes, answers = answers,
}
local KEEP = {
  'active', 'pending', 'retry', 'scheduled', 'completed', 'archived', 'cancelled', 'quarantined',
}
local sets, NEAR, DRIFT = {}, 500, 2000
for _, place in ipairs(PLACES) do
  sets[place[1]] = place[2]
end

local function record_is_there()
  return call('HEXISTS', jobs, id) == 1
end

local function header()
  return head_of(call('HGET', jobs, id) or '')
end

-- Where examine saw an entry: its priority, if it is still there and live.
local function lane_of(place)
  local priority, from, entry = match(place, '^(%d) (%d+) (.*)$')
  return priority and stands_at(priority, entry, tonumber(from), DRIFT) and tonumber(priority)
end

local function leave_set(name)
  call('ZREM', sets[name], id)
  if name == 'active' then
    call('HDEL', holder, id)
    call('HDEL', progress, id)
  end
end

-- Of several places one is kept: where the job ended, if it is known how; else where it is held, or
-- is nearest to run.
local function place_to_keep(held)
  local ended = call('HEXISTS', endings, id) == 1
  for _, name in ipairs(KEEP) do
    if ended and FINISHED[name] and held[name] then
      return name
    end
  end
  for _, name in ipairs(KEEP) do
    if held[name] then
      return name
    end
  end
end

local function mend_places()
  local held, count, priority = {}, 0, nil
  for _, name in ipairs(sets_of({ id })[1]) do
    held[name], count = true, count + 1
  end
  if detail ~= '' then
    priority = lane_of(detail)
    if not priority then
      return false
    end
    held.pending, count = true, count + 1
  end
  if count < 2 then
    return false
  end
  local kept = place_to_keep(held)
  for name in pairs(held) do
    if name == 'pending' and kept ~= name then
      leave_lane(priority, id)
    elseif kept ~= name then
      leave_set(name)
    end
  end
  if not FINISHED[kept] then
    call('HDEL', endings, id)
    call('HDEL', results, id)
  end
  return true
end

-- Claim skips it, as it does those of cancelled jobs: taking it out would be O(n).
local function mend_entry()
  local priority = not record_is_there() and lane_of(detail)
  if not priority then
    return false
  end
  leave_lane(priority, id)
  return true
end

-- Its record stays: it may hold what somebody needs.
local function mend_stray()
  local priority = not sets[detail] and lane_of(detail)
  if is_id(id) or not priority and not (sets[detail] and call('ZSCORE', sets[detail], id)) then
    return false
  elseif priority then
    leave_lane(priority, id)
  else
    leave_set(detail)
  end
  return true
end

local function mend_twice()
  local one, other = match(detail, '^(%d) (%d)$')
  if not stands_twice(one, ARGV[4], other, ARGV[5]) then
    return false
  end
  if one == other then
    -- Within what was looked at just now.
    call('LREM', lane(one), 1, ARGV[5])
    return true
  end
  local own = priority_of(settling_part_of(header()) or '')
  leave_lane(own == tonumber(one) and tonumber(other) or tonumber(one), id)
  return true
end

local function mend_no_record()
  if record_is_there() or not call('ZSCORE', sets[detail], id) then
    return false
  end
  leave_set(detail)
  return true
end

local function is_placeless()
  local there = record_is_there() and #sets_of({ id })[1] == 0
  return there and not near_ends({ id }, NEAR)[id]
end

-- Runs, at least once; one of which an end is told is kept as archived.
local function mend_no_place()
  if not is_placeless() then
    return false
  end
  local settling = settling_part_of(header()) or ''
  if call('HEXISTS', endings, id) == 1 then
    call('ZADD', archived, int(now + kept_for('archived', settling)), id)
    return true
  end
  local priority = priority_of(settling)
  push('LPUSH', priority, { id })
  local known = known_lanes(call('HGET', meta, 'lanes'))
  call('HSET', meta, 'lanes', lanes_needed(known))
  leave_wake()
  return true
end

-- A lease that has ended: sweep reclaims the job.
local function mend_no_holder()
  local ends = call('ZSCORE', active, id)
  if not ends or tonumber(ends) <= now or is_holder(call('HGET', holder, id)) then
    return false
  end
  call('ZADD', active, int(now), id)
  return true
end

local function mend_no_lease()
  if call('ZSCORE', active, id) or call('HEXISTS', holder, id) == 0 then
    return false
  end
  if is_placeless() then
    call('ZADD', active, int(now), id)
  else
    call('HDEL', holder, id)
    call('HDEL', progress, id)
  end
  return true
end

local function mend_leftover()
  local there = record_is_there()
  if detail == 'progress' then
    there = call('ZSCORE', active, id)
  end
  if there or call('HEXISTS', HASHES[detail], id) == 0 then
    return false
  end
  if detail == 'tries' then
    forget_tries({ id })
  else
    call('HDEL', HASHES[detail], id)
  end
  return true
end

local function mend_tries()
  local text = call('HGET', tries, id)
  if not text or is_tries(text) then
    return false
  end
  forget_tries({ id })
  return true
end

local function mend_key_of_nobody()
  local value = call('HGET', unique, id)
  if not value or key_is_owned(id, value) then
    return false
  end
  local ends = match(value, '^%S+ throttle (%d+)$')
  if ends and #ends < 16 then
    call('ZADD', expiry, ends, 'unique ' .. id)
  else
    call('HDEL', unique, id)
  end
  return true
end

local function mend_key_missing()
  local token = record_is_there() and own_key(settling_part_of(header()))
  local unfinished = token and not FINISHED[sets_of({ id })[1][1]]
  if not unfinished or call('HGET', unique, token) == id or holder_of(token) then
    return false
  end
  call('HSET', unique, token, id)
  return true
end

-- Held by the job that may hold it, in a mode that is not its own.
local function mend_key_mode()
  local token = own_key(settling_part_of(header()))
  local value = token and call('HGET', unique, token)
  if not value or value == id or holder_of(token) ~= id then
    return false
  end
  call('HSET', unique, token, id)
  call('ZREM', expiry, 'unique ' .. token)
  return true
end

-- What ends by time is looked at when its time comes; what tells of no time is dropped.
local function mend_timer()
  local kind, of = match(id, '^(%a+) (.*)$')
  if call('ZSCORE', expiry, id) then
    return false
  end
  if kind ~= 'deadline' then
    if call('HEXISTS', HASHES[kind], of) == 0 then
      return false
    elseif detail ~= '' and #detail < 16 then
      call('ZADD', expiry, detail, id)
    else
      call('HDEL', HASHES[kind], of)
    end
    return true
  end
  local settling = settling_part_of(head_of(call('HGET', jobs, of) or ''))
  local deadline = settling and field(settling, 'deadline')
  if not deadline or FINISHED[sets_of({ of })[1][1]] then
    return false
  end
  call('ZADD', expiry, deadline, id)
  return true
end

local function mend_timer_of_nobody()
  local kind, of = match(id, '^(%a+) (.*)$')
  local nobody = kind == 'deadline' and call('HEXISTS', jobs, of) == 0 or not kind
  return nobody and call('ZREM', expiry, id) == 1
end

local REASONS = {
  completed = 'completed', archived = 'operator', cancelled = 'operator',
  quarantined = 'quarantined',
}
local function mend_ending()
  local state = sets_of({ id })[1][1]
  if not FINISHED[state] or call('HEXISTS', endings, id) == 1 or not record_is_there() then
    return false
  end
  local fp = field(settling_part_of(header()) or '', 'fp')
  local text = REASONS[state] .. ' ' .. int(now) .. ' -'
  if state == 'quarantined' and fp then
    text = text .. ' fp=' .. fp
  end
  call('HSET', endings, id, text)
  return true
end

-- `id`: lane and id; as long as the text is what it was, so are the entries.
local function mend_ghost()
  local text = call('HGET', ghosts, id)
  if (text or '') ~= detail or detail == ARGV[4] then
    return false
  end
  local before, after = stale_and_token(text) or 0, stale_and_token(ARGV[4]) or 0
  call('HINCRBY', meta, 'ghosts', int(after - before))
  if ARGV[4] == '' then
    call('HDEL', ghosts, id)
  else
    call('HSET', ghosts, id, ARGV[4])
  end
  return true
end

local function mend_undecodable()
  local set, priority = sets_of({ id })[1][1], ARGV[4] ~= '' and lane_of(ARGV[4])
  local waits = set == 'scheduled' or set == 'retry' or not set and priority
  if not record_is_there() or header() ~= detail or not waits then
    return false
  end
  finish('archived', id, '', 'undecodable', '-')
  write_finished({ archived = archived })
  if set then
    leave_set(set)
  else
    leave_lane(priority, id)
  end
  return true
end

local function mend_ttl()
  local mended = 0
  for _, key in ipairs(KEYS) do
    mended = mended + call('PERSIST', key)
  end
  return mended > 0
end

-- The token is a hint: of whatever stands there nothing is lost.
local function mend_wake()
  if call('TYPE', wake).ok == 'list' and call('LLEN', wake) <= 1 then
    return false
  end
  call('UNLINK', wake)
  leave_wake()
  return true
end

local function put(name, number)
  local text = int(number)
  if call('HGET', meta, name) == text then
    return false
  end
  call('HSET', meta, name, text)
  return true
end

-- Counters that HINCRBY cannot take are set to what they count, or, where that is too much to be
-- added up at once, near it.
local function make_countable()
  if not is_whole(call('HGET', meta, 'ghosts') or '0') then
    put('ghosts', sum_of_stale() or call('HLEN', ghosts))
  end
  for _, counter in ipairs(COUNTERS) do
    if not is_whole(call('HGET', meta, counter[1]) or '0') then
      put(counter[1], call('HLEN', counter[2]))
    end
  end
end

-- Where there are too many names in `ghosts` to be added up at once, `detail` is their sum, and holds
-- as long as `meta` has what it had: ARGV[4].
local function mend_counters()
  local stale, changed = call('HGET', meta, 'ghosts'), false
  local sum = sum_of_stale()
  if not sum and detail ~= '' and (stale or '') == ARGV[4] then
    sum = tonumber(detail)
  end
  if sum and (stale or '0') ~= int(sum) then
    changed = put('ghosts', sum)
  end
  for _, counter in ipairs(COUNTERS) do
    local held = call('HLEN', counter[2])
    if (call('HGET', meta, counter[1]) or '0') ~= int(held) then
      changed = put(counter[1], held) or changed
    end
  end
  return changed
end

-- Lanes of jobs that wait elsewhere are not known at once: so that none is passed over, all are.
local function mend_lanes()
  local all = '9876543210'
  if call('HGET', meta, 'lanes') == all then
    return false
  end
  call('HSET', meta, 'lanes', all)
  leave_wake()
  return true
end

local MENDS = {
  places = mend_places, entry = mend_entry, stray = mend_stray, twice = mend_twice,
  no_record = mend_no_record, no_place = mend_no_place, no_holder = mend_no_holder,
  no_lease = mend_no_lease, leftover = mend_leftover, tries = mend_tries,
  key_of_nobody = mend_key_of_nobody, key_missing = mend_key_missing, key_mode = mend_key_mode,
  timer = mend_timer, timer_of_nobody = mend_timer_of_nobody, ending = mend_ending,
  ghost = mend_ghost, undecodable = mend_undecodable, ttl = mend_ttl, wake = mend_wake,
  type = mend_wake, counters = mend_counters, lanes = mend_lanes,
}

-- Allowed when memory is full, and so is then all that follows.
local nameless = open_writes() > 0
-- Whose other keys may be of any type.
local keys_only = ARGV[1] == 'ttl' or ARGV[1] == 'type' or ARGV[1] == 'wake'
if not keys_only and ARGV[1] ~= 'counters' then
  make_countable()
end
local changed = MENDS[ARGV[1]]() or nameless and id == ''
if not keys_only and (changed or ARGV[1] == 'counters') then
  local stale = call('HGET', meta, 'ghosts')
  changed = put('unfinished', true_unfinished(is_whole(stale) and tonumber(stale) or 0)) or changed
end
tell_ended()
outcome(changed and 'CHANGED' or 'UNCHANGED')
return outcomes()
