-- Jobs that end but are kept: gathered by `finish`, written by `write_finished`.
local ends_at, ending_texts, tokens, owners = {}, {}, {}, {}

-- Frees the job's unique key when all is written. `settling` is what settling needs of the header.
local function free_unique(id, settling)
  local token = field(settling, 'unique')
  if token then
    tokens[#tokens + 1], owners[#owners + 1] = token, id
  end
end

-- `least`: ms for which the job is kept unless its own retention is longer.
local function finish(id, settling, reason, worker, least)
  local retention = math.max(tonumber(field(settling, 'retention')) or 0, least)
  ends_at[#ends_at + 1], ends_at[#ends_at + 2] = int(now + retention), id
  ending_texts[#ending_texts + 1] = id
  ending_texts[#ending_texts + 1] = reason .. ' ' .. int(now) .. ' ' .. worker
  free_unique(id, settling)
end

-- Only the owner's end frees a key.
local function write_freed()
  if #tokens == 0 then
    return
  end
  local held_by, freed = call('HMGET', unique, unpack(tokens)), {}
  for i = 1, #tokens do
    if held_by[i] == owners[i] then
      freed[#freed + 1] = tokens[i]
    end
  end
  each('HDEL', unique, freed)
end

local function write_finished(finished)
  each('ZADD', finished, ends_at)
  each('HSET', endings, ending_texts)
  write_freed()
end
