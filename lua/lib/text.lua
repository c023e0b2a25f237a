-- Short names for what reads texts, and the parts of records and holders.
local sub, match, find, gmatch = string.sub, string.match, string.find, string.gmatch

-- The value of a header field, or nil. `text` is a part of a header line, never a payload.
local function field(text, name)
  return match(text, ' ' .. name .. '=(%S+)')
end

local function priority_of(settling)
  return tonumber(match(settling .. ' ', ' priority=(%d) ')) or 4
end
