-- cancel: an operator stops unfinished jobs; the fence of an active one is superseded.
-- KEYS: answers expiry jobs meta active holder scheduled retry completed archived cancelled quarantined unique endings ghosts
-- ARGV: caller seq budget, then ids
-- Reply: text: n CHANGED | n UNCHANGED | n MISSING | 1 FORBIDDEN state. It may end early, after
--        about 1 MiB read: the caller calls again for the rest
-- Cost: 7 commands a call, up to 11 per job
-- Uses: clock repeats outcomes text chunks held state finish ghosts
local answers, expiry, jobs, meta, active, holder, scheduled, retry, completed, archived, cancelled,
  quarantined, unique, endings, ghosts = unpack(KEYS)

if kept then
  return kept
end
-- In a queue that nobody has made there is nothing to stop, and nothing to keep.
local made = call('HGET', meta, 'unfinished')
local CANCELLED_RETENTION, MAX_READ = 7 * 86400000, 1048576
local read, stopped, chosen = 0, {}, {}
local from_scheduled, from_retry, from_lane = {}, {}, {}

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

local function stop(word, id)
  local settling, worker = settling_of(word, id)
  if word == 'PENDING' then
    from_lane[#from_lane + 1] = { tonumber(field(settling, 'priority')) or 4, id }
  elseif word ~= 'ACTIVE' then
    local from = word == 'RETRY' and from_retry or from_scheduled
    from[#from + 1] = id
  end
  stopped[#stopped + 1], chosen[id] = id, true
  finish(id, settling, 'operator', worker, CANCELLED_RETENTION)
  outcome('CHANGED')
end

for i = 4, #ARGV do
  local id = ARGV[i]
  local word = call('HEXISTS', jobs, id) == 1 and (place_of(id) or 'PENDING')
  if not word then
    outcome('MISSING')
  elseif word == 'CANCELLED' or chosen[id] then
    outcome('UNCHANGED')
  elseif is_finished(word) then
    detailed('FORBIDDEN', word)
  else
    stop(word, id)
  end
  if read >= MAX_READ then
    break
  end
end

if not made then
  return outcomes()
end
open_writes()
write_finished(cancelled)
release(stopped)
each('ZREM', scheduled, from_scheduled)
each('ZREM', retry, from_retry)
for _, entry in ipairs(from_lane) do
  add_ghosts(entry[1], entry[2], 1)
end
if #stopped > 0 then
  call('HINCRBY', meta, 'unfinished', -#stopped)
end
return keep(outcomes())
