-- Of the jobs that are held (lib/held.lua) those whose record is there. Of one that somebody's hand
-- has deleted nothing is made again: it counts as not held, and sweep forgets it with its lease.
local function only_with_record(ids, entries)
  for i = 1, #ids do
    if entries[i] and call('HEXISTS', jobs, ids[i]) == 0 then
      entries[i] = false
    end
  end
  return entries
end
