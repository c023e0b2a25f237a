-- Makes lease and holder of claimed jobs: `ids`, `records` and `settling` are parallel, `counts`
-- has `<attempt> <crash>` of those that failed before. An entry of a job that is held already, or
-- that comes twice in this call, is dropped from the lists. Answers the fence ('0' if nothing was
-- left to claim) and how many were dropped.
local function hold(ids, records, settling, counts, last_fence, lease_ends)
  local taken, leases, ends = #ids, {}, int(lease_ends)
  for i = 1, taken do
    leases[2 * i - 1], leases[2 * i] = ends, ids[i]
  end
  local added, left = 0, taken
  for from = 1, #leases, 1000 do
    added = added + call('ZADD', active, 'NX', unpack(leases, from, math.min(from + 999, #leases)))
  end
  if added < taken then
    local held, first = call('HMGET', holder, unpack(ids)), {}
    left = 0
    for i = 1, taken do
      local id = ids[i]
      ids[i] = nil
      if not held[i] and not first[id] then
        first[id], left = true, left + 1
        ids[left], records[left] = id, records[i]
        settling[left], counts[left] = settling[i], counts[i]
      end
    end
    if left == 0 then
      return '0', taken
    end
  end
  local last = tonumber(last_fence) or 0
  -- Beyond 2^53 numbers lose steps: a fence that high is not one of ours.
  local fence = int(math.max(last < 2 ^ 53 and last + 1 or 0, now_us))
  local prefix, entries = fence .. ' ' .. ARGV[4] .. ' ', {}
  for i = 1, left do
    local tried = counts[i] and ' tried=1' or ''
    entries[2 * i - 1], entries[2 * i] = ids[i], prefix .. settling[i] .. tried
  end
  each('HSET', holder, entries)
  call('HSET', meta, 'fence', fence)
  return fence, taken - left
end
