-- A job's state is where its id is. Answers the state's word and its time there; nil if the job is
-- nowhere, which with a record means pending.
local function place_of(id)
  local places = {
    { 'SCHEDULED', scheduled }, { 'RETRY', retry }, { 'ACTIVE', active },
    { 'COMPLETED', completed }, { 'ARCHIVED', archived }, { 'CANCELLED', cancelled },
    { 'QUARANTINED', quarantined },
  }
  for _, place in ipairs(places) do
    local score = call('ZSCORE', place[2], id)
    if score then
      return place[1], score
    end
  end
end

local function is_finished(word)
  return word == 'COMPLETED' or word == 'ARCHIVED' or word == 'CANCELLED' or word == 'QUARANTINED'
end
