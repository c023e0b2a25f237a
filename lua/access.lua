-- access: which of some commands the caller's user may not run. Reads and changes nothing.
-- KEYS: meta
-- ARGV: per command: its words, a space between them; `*` is the key
-- Reply: array: the places (from 1) of those that are refused; nil on a server that cannot tell
-- Cost: none
-- Uses: none
local meta = unpack(KEYS)

local refused, may = {}, redis.acl_check_cmd
if not may then
  return nil
end
for i = 1, #ARGV do
  local words = {}
  for word in string.gmatch(ARGV[i], '%S+') do
    words[#words + 1] = word == '*' and meta or word
  end
  -- Of a command that the server does not know this is an error: it may not be run either.
  local told, allowed = pcall(may, unpack(words))
  if not (told and allowed) then
    refused[#refused + 1] = i
  end
end
return refused
