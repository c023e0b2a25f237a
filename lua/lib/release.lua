-- Ends leases, after the jobs have their next place: a script that dies between the two leaves
-- them in two, not in none.
local function release(ids)
  if #ids > 0 then
    call('ZREM', active, unpack(ids))
    call('HDEL', holder, unpack(ids))
  end
end

-- The same for jobs some of which told of their progress: their holders' entries, by place, say so.
local function release_all(ids, entries)
  local told = {}
  for i = 1, #ids do
    if entries[i] and find(entries[i], ' progress=1', 1, true) then
      told[#told + 1] = ids[i]
    end
  end
  each('HDEL', progress, told)
  release(ids)
end
