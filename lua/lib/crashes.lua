-- Crashes of a fingerprint: `<count> <end of window, ms> <last that counted, µs>`. One death is one
-- crash: a lease counts only if it was claimed after the last one. `meta.crashes` and
-- `meta.quarantined` count the entries, so that others never look.
local crashed, closed, closing = {}, {}, {}

-- Answers whether the fingerprint is in quarantine now: `limit` crashes within `window` ms put it
-- there.
local function count_crash(fp, fence, id, worker, limit, window)
  if closed[fp] == nil then
    closed[fp] = call('HEXISTS', quarantine, fp) == 1
    local count, ends, last = match(call('HGET', crashes, fp) or '', '^(%d+) (%d+) (%d+)$')
    crashed[fp] = { tonumber(count) or 0, tonumber(ends) or 0, tonumber(last) or 0 }
  end
  local entry = crashed[fp]
  if entry[2] <= now then
    entry[1], entry[2], entry[3] = 0, now + window, 0
  end
  if fence > entry[3] then
    entry[1], entry[3], entry.counted = entry[1] + 1, now_us, true
  end
  if not closed[fp] and entry[1] >= limit then
    local line = 'since=' .. int(now) .. ' crashes=' .. entry[1] .. ' window=' .. int(window)
    closed[fp] = true
    closing[#closing + 1] = fp
    closing[#closing + 1] = line .. ' sample=' .. id .. ' worker=' .. worker
  end
  return closed[fp]
end

local function write_crashes()
  for fp, entry in pairs(crashed) do
    if entry.counted then
      local text = int(entry[1]) .. ' ' .. int(entry[2]) .. ' ' .. int(entry[3])
      if call('HSET', crashes, fp, text) == 1 then
        call('HINCRBY', meta, 'crashes', 1)
      end
      call('ZADD', expiry, int(entry[2]), 'crashes ' .. fp)
    end
  end
  if #closing > 0 then
    call('HINCRBY', meta, 'quarantined', each('HSET', quarantine, closing))
  end
end
