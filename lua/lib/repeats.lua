-- Repeats: what a caller was answered is kept until its next call. ARGV begins with caller, seq
-- and budget (ms). The same seq again gets the kept answer and nothing is done; a lower one came
-- late and does nothing. Sweep drops a caller that was idle for its budget and a minute more.
local kept
local kept_before = call('HGET', answers, ARGV[1])
if kept_before then
  local seq_end = string.find(kept_before, ' ', 1, true)
  local last, seq = tonumber(string.sub(kept_before, 1, seq_end - 1)), tonumber(ARGV[2])
  if last > seq then
    return redis.status_reply('LATE')
  end
  if last == seq then
    kept = string.match(kept_before, '^%d+ %d+ (.*)$')
  end
end

-- Keeps the answer: the last write of every call.
local function keep(text)
  local ends = int(now + ARGV[3] + 60000)
  call('HSET', answers, ARGV[1], ARGV[2] .. ' ' .. ends .. ' ' .. text)
  if not kept_before then
    call('ZADD', expiry, ends, 'answers ' .. ARGV[1])
  end
  return text
end

-- The same for a call that may have done nothing: on a queue that nobody has made it leaves no key,
-- which nobody would ever sweep. Nothing is to be repeated there: a second call finds as little.
local function keep_after(did, text)
  if not did and not kept_before and call('EXISTS', meta) == 0 then
    return text
  end
  return keep(text)
end
