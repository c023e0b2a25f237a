-- operate: what an operator does to jobs; limits are not looked at.
-- KEYS: answers expiry jobs meta wake active holder scheduled retry completed archived cancelled quarantined tries errors unique endings results progress ghosts quarantine seen stats pending:0..9
-- ARGV: caller seq budget, cancel|archive|run|rerun|delete, then ids
-- Reply: text: n CHANGED | n UNCHANGED | n MISSING | 1 FORBIDDEN state | n EXPIRED
--        | 1 QUARANTINED fingerprint | 1 DUPLICATE id 0. It may end early, after about 1 MiB read:
--        the caller calls again for the rest
-- Cost: 6 commands a call, up to 20 per job
-- Uses: clock repeats outcomes text chunks held release wake lanes state unique ghosts entries day publish ended finish tries remember
local answers, expiry, jobs, meta, wake, active, holder, scheduled, retry, completed, archived,
  cancelled, quarantined, tries, errors, unique, endings, results, progress, ghosts, quarantine,
  seen, stats = unpack(KEYS)

if kept then
  return kept
end
local operation, MAX_READ = ARGV[4], 1048576
local ZSETS = {
  SCHEDULED = scheduled, RETRY = retry, COMPLETED = completed, ARCHIVED = archived,
  CANCELLED = cancelled, QUARANTINED = quarantined,
}
local TARGETS = { cancel = 'CANCELLED', archive = 'ARCHIVED', run = 'PENDING', rerun = 'PENDING' }
local read, became, unfinished = 0, {}, 0
-- What is written when all is judged.
local stopped, held, leaving, ghosted, to_front, to_back, again, deleted =
  {}, {}, {}, {}, {}, {}, {}, {}
local keys, keys_taken, timers = {}, {}, {}

-- Ids by lane.
local function add_to(lists, priority, id)
  lists[priority] = lists[priority] or {}
  table.insert(lists[priority], id)
end

-- What settling needs of the header, and who holds the job; a broken record settles with nothing.
local function settling_of(word, id)
  local entry = word == 'ACTIVE' and call('HGET', holder, id)
  if entry then
    return entry, worker_of(entry)
  end
  local record = call('HGET', jobs, id)
  read = read + #record
  return match(record, '^at=%d+( fp=%x+[^\n]-) kind=') or '', '-'
end

-- The job leaves its place when all is written.
local function leave(word, id, settling)
  if word == 'PENDING' then
    ghosted[#ghosted + 1] = { priority_of(settling), id }
  elseif word == 'ACTIVE' then
    stopped[#stopped + 1], held[#held + 1] = id, settling
  else
    leaving[word] = leaving[word] or {}
    table.insert(leaving[word], id)
  end
end

local function stop(word, id, state)
  local settling, worker = settling_of(word, id)
  leave(word, id, settling)
  finish(state, id, settling, 'operator', worker)
  unfinished, became[id] = unfinished - 1, state == 'cancelled' and 'CANCELLED' or 'ARCHIVED'
  outcome('CHANGED')
end

local function run_now(word, id)
  local settling = settling_of(word, id)
  leave(word, id, settling)
  add_to(to_front, priority_of(settling), id)
  became[id] = 'PENDING'
  outcome('CHANGED')
end

local function take_key_again(id, token, settling)
  local mode = match(field(settling, 'unique_mode') or '', '^%a+')
  if token and mode ~= 'throttle' then
    keys_taken[token] = id
    keys[#keys + 1], keys[#keys + 2] = token, id .. (mode == 'debounce' and ' debounce' or '')
  end
end

local function rerun(word, id)
  local settling = settling_of(word, id)
  local deadline = tonumber(field(settling, 'deadline'))
  if deadline and deadline <= now then
    return outcome('EXPIRED')
  end
  local fp, token = field(settling, 'fp'), field(settling, 'unique')
  if fp and call('HEXISTS', quarantine, fp) == 1 then
    return detailed('QUARANTINED', fp)
  end
  local throttled = find(settling, ' unique_mode=throttle:', 1, true)
  local other = token and not throttled and (keys_taken[token] or holder_of(token))
  if other then
    return detailed('DUPLICATE', other .. ' 0')
  end
  leave(word, id, settling)
  take_key_again(id, token, settling)
  if deadline then
    timers[#timers + 1], timers[#timers + 2] = int(deadline), 'deadline ' .. id
  end
  add_to(to_back, priority_of(settling), id)
  again[#again + 1] = id
  unfinished, became[id] = unfinished + 1, 'PENDING'
  outcome('CHANGED')
end

local function delete(word, id)
  local settling = settling_of(word, id)
  leave(word, id, settling)
  if is_finished(word) then
    record_goes(id, settling)
  else
    free_unique(id, settling)
    record_goes(id, settling)
    has_ended('deleted', id)
    unfinished = unfinished - 1
  end
  deleted[#deleted + 1], became[id] = id, 'GONE'
  outcome('CHANGED')
end

local function act(word, id)
  local waits = word == 'SCHEDULED' or word == 'RETRY'
  if operation == 'delete' and word ~= 'ACTIVE' then
    return delete(word, id)
  elseif operation == 'run' and waits then
    return run_now(word, id)
  elseif operation == 'rerun' and is_finished(word) and word ~= 'QUARANTINED' then
    return rerun(word, id)
  elseif (operation == 'cancel' or operation == 'archive') and not is_finished(word) then
    return stop(word, id, operation == 'cancel' and 'cancelled' or 'archived')
  end
  detailed('FORBIDDEN', word)
end

for i = 5, #ARGV do
  local id = ARGV[i]
  local word = became[id]
  if not word then
    word = call('HEXISTS', jobs, id) == 1 and (place_of(id) or 'PENDING') or 'GONE'
  end
  if word == 'GONE' then
    outcome('MISSING')
  elseif word == TARGETS[operation] then
    outcome('UNCHANGED')
  else
    act(word, id)
  end
  if read >= MAX_READ then
    break
  end
end

-- The next place first, then out of the one before: a script that dies between the two leaves a job
-- in two places, not in none.
open_writes()
for priority, ids in pairs(to_back) do
  push('LPUSH', priority, ids)
end
-- As if one after another: the last is the first.
for priority, ids in pairs(to_front) do
  push('RPUSH', priority, ids)
end
write_finished({ cancelled = cancelled, archived = archived })
write_remembered()
each('HDEL', jobs, deleted)
for word, ids in pairs(leaving) do
  each('ZREM', ZSETS[word], ids)
end
for _, job in ipairs(ghosted) do
  leave_lane(job[1], job[2])
end
release_all(stopped, held)
for _, id in ipairs(again) do
  call('HDEL', endings, id)
  call('HDEL', results, id)
  keep_tries({ id, '0 0' })
end
each('HSET', unique, keys)
each('ZADD', expiry, timers)
if #deleted > 0 then
  forget_tries(deleted)
  call('HDEL', errors, unpack(deleted))
  call('HDEL', endings, unpack(deleted))
  call('HDEL', results, unpack(deleted))
end
if unfinished ~= 0 then
  call('HINCRBY', meta, 'unfinished', unfinished)
end
if next(to_back) or next(to_front) then
  leave_wake()
end
-- Whoever runs a job that is stopped need not go on.
for i, id in ipairs(stopped) do
  local fence = match(held[i], '^(%d+) ')
  if fence then
    publish('control', 'superseded ' .. queue_name .. ' ' .. fence .. ' ' .. id)
  end
end
tell_ended()
return keep_after(next(became), outcomes())
