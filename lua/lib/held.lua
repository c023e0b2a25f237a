-- Ownership: `ids` and `fences` are parallel. Answers for each job its holder's entry,
-- `<fence> <worker> <what settling needs>`, or false if (id, fence) does not hold it (any more).
-- A verb that settles ends a job's lease: the same job again in its call is not held.
local function holders(ids, fences, settles)
  local entries = call('HMGET', holder, unpack(ids))
  local once, fence, prefix, length = {}, nil, nil, nil
  for i = 1, #ids do
    local entry, id = entries[i], ids[i]
    if fences[i] ~= fence then
      fence = fences[i]
      prefix, length = fence .. ' ', #fence + 1
    end
    if entry and not once[id] and sub(entry, 1, length) == prefix then
      once[id] = settles
    else
      entries[i] = false
    end
  end
  return entries
end

local function worker_of(entry)
  return match(entry, '^%d+ (%S+)') or '-'
end

-- The first write of a script that must work when memory is full: a deletion is allowed then, and
-- so is all that follows it in the script. Answers how many holders without an id were there.
local function open_writes()
  return call('HDEL', holder, '')
end
