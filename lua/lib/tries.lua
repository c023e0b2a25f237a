-- Attempts and crashes, `<attempt> <crash>`, only of jobs that failed; `meta.tried` counts them, so
-- that a healthy queue never looks.
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
