-- The last 20 failures of a job: a JSON object a line, oldest first. `said` is the object's end,
-- encoded by the caller; Lua never decodes it.
local function failures_with(lines, counted, worker, said)
  local line = '{"at":' .. int(now) .. counted .. ',"worker":"' .. worker .. '"' .. said
  if not lines then
    return line
  end
  local _, breaks = string.gsub(lines, '\n', '\n')
  if breaks >= 19 then
    lines = match(lines, '^[^\n]*\n(.*)$')
  end
  return lines .. '\n' .. line
end
