-- Attempts and crashes, `<attempt> <crash>`, only of jobs that failed; `meta.tried` counts them, so
-- that a healthy queue never looks.
-- Attempt and crash of an entry; what somebody's hand has broken counts as none.
local function tries_of(text)
  local attempt, crash = string.match(text or '', '^(%d+) (%d+)$')
  return tonumber(attempt) or 0, tonumber(crash) or 0
end

local function keep_tries(counts)
  local added = each('HSET', tries, counts)
  if added > 0 then
    call('HINCRBY', meta, 'tried', added)
  end
end

local function forget_tries(ids)
  local gone = call('HDEL', tries, unpack(ids))
  if gone > 0 then
    call('HINCRBY', meta, 'tried', -gone)
  end
end
