-- Who holds a unique key: `<id>` until its job is finished, `<id> debounce` until it is claimed,
-- `<id> throttle <end>` until then. Answers the holder's id and mode, or nil if the key is free.
local function holder_of(token)
  local value = call('HGET', unique, token)
  if not value then
    return nil
  end
  local id, mode, ends = match(value, '^(%S+) ?(%S*) ?(%d*)$')
  if not id then
    -- Broken by somebody's hand: free.
    return nil
  end
  if mode == 'throttle' then
    return (tonumber(ends) or 0) > now and id or nil, mode
  end
  if call('HEXISTS', jobs, id) == 1 and not is_finished(place_of(id)) then
    return id, mode
  end
end
