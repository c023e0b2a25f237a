-- Repeats: what a caller was answered is kept until its next call. ARGV begins with caller, seq
-- and budget (ms). The same seq again gets the kept answer and nothing is done; a lower one came
-- late and does nothing. Sweep drops a caller that was idle for its budget and a minute more.
local caller, seq, budget = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local kept
local kept_before = call('HGET', answers, caller)
if kept_before then
  local last, text = string.match(kept_before, '^(%d+) %d+ (.*)$')
  last = tonumber(last)
  if last > seq then
    return redis.status_reply('LATE')
  end
  if last == seq then
    kept = text
  end
end

-- Keeps the answer: the last write of every call.
local function keep(text)
  local ends = now + budget + 60000
  call('HSET', answers, caller, ARGV[2] .. ' ' .. ends .. ' ' .. text)
  if not kept_before then
    call('ZADD', expiry, ends, 'answers ' .. caller)
  end
  return text
end
