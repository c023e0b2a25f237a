-- Jobs whose leases ran out: each has crashed once more, and goes where its crashes say.
-- ARGV[2] is the sweep's random number.

-- What settling needs of a job whose lease ran out: its holder's entry, or, where that is gone or
-- broken, its record's header.
local function entry_of(id, entry)
  if entry and match(entry, '^%d+ %S+ fp=') then
    return entry
  end
  return '0 - ' .. (match(call('HGET', jobs, id), '^at=%d+ (fp=%x+[^\n]-) kind=') or '')
end

-- After the first crash a job is put back; after later ones it waits 5 s × 4^(crash - 2) ± 50 %.
local function crash_delay(crash, i)
  local spread = 0.5 + (tonumber(ARGV[2]) + i * 0.618034) % 1
  return math.min(math.floor(5000 * 4 ^ (crash - 2) * spread), 3650 * DAY)
end

-- `end_job` ends one that is not to run any more. Answers the ids without a record, which are
-- dropped, how many jobs are pending again, and the lanes known then.
local function reclaim(ids, limit, window, end_job, lanes)
  local entries, counts = call('HMGET', holder, unpack(ids)), call('HMGET', tries, unpack(ids))
  local lines, new_counts, new_lines, later = call('HMGET', errors, unpack(ids)), {}, {}, {}
  local back, gone, to_pending = {}, {}, 0
  local function crash_one(i)
    local id, entry = ids[i], entry_of(ids[i], entries[i])
    local attempt, crash = tries_of(counts[i])
    crash = crash + 1
    new_counts[#new_counts + 1], new_counts[#new_counts + 2] = id, attempt .. ' ' .. crash
    local fence, worker = match(entry, '^(%d+) (%S+)')
    new_lines[#new_lines + 1] = id
    new_lines[#new_lines + 1] = failures_with(lines[i], ',"crash":' .. crash, worker, '}')
    local fp, deadline = field(entry, 'fp'), tonumber(field(entry, 'deadline'))
    local is_closed = fp and count_crash(fp, tonumber(fence), id, worker, limit, window)
    if deadline and deadline <= now then
      end_job('archived', id, entry, 'expired', worker)
    elseif is_closed then
      end_job('quarantined', id, entry, 'quarantined', worker)
    elseif crash == 1 then
      local priority = priority_of(entry)
      back[priority] = back[priority] or {}
      table.insert(back[priority], id)
      to_pending = to_pending + 1
    else
      later[#later + 1], later[#later + 2] = int(now + crash_delay(crash, i)), id
    end
  end
  for i, id in ipairs(ids) do
    if call('HEXISTS', jobs, id) == 1 then
      crash_one(i)
    else
      gone[#gone + 1] = id
    end
  end
  lanes = know_lanes(lanes, back)
  for priority, list in pairs(back) do
    push('LPUSH', priority, list)
  end
  each('ZADD', retry, later)
  write_crashes()
  keep_tries(new_counts)
  each('HSET', errors, new_lines)
  if #ids > #gone then
    call('HINCRBY', stats, today() .. ':crashed', #ids - #gone)
  end
  -- Those that ended are written with the sweep's others, before their leases are let go.
  write_finished({ archived = archived, quarantined = quarantined })
  ends_at, ending_texts, tokens, owners, deadlines = {}, {}, {}, {}, {}
  release_all(ids, entries)
  return gone, to_pending, lanes
end
