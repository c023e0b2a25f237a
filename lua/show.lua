-- show: everything known of a job.
-- KEYS: jobs active holder scheduled retry completed archived cancelled quarantined tries errors results endings progress
-- ARGV: id
-- Reply: array: state, its time there ('' pending), record, and, each nil if there is none:
--        tries, errors, holder, result, ending, progress; MISSING
-- Cost: 15 commands at most
-- Uses: clock state
local jobs, active, holder, scheduled, retry, completed, archived, cancelled, quarantined, tries,
  errors, results, endings, progress = unpack(KEYS)

local id = ARGV[1]
local record = call('HGET', jobs, id)
if not record then
  return redis.status_reply('MISSING')
end
local word, score = place_of(id)
local reply = { redis.status_reply(word or 'PENDING'), score or '', record }
for i, key in ipairs({ tries, errors, holder, results, endings, progress }) do
  reply[3 + i] = call('HGET', key, id)
end
return reply
