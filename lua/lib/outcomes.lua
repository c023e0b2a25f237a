-- Outcomes of a batch as one text: a line a run, `<count> <WORD>`, or `1 <WORD> <details>`.
-- The usual call has one line.
local outcome_lines, run_word, run = {}, nil, 0

local function end_run()
  if run > 0 then
    outcome_lines[#outcome_lines + 1] = run .. ' ' .. run_word
    run, run_word = 0, nil
  end
end

local function outcome(word)
  if word ~= run_word then
    end_run()
    run_word = word
  end
  run = run + 1
end

local function detailed(word, details)
  end_run()
  outcome_lines[#outcome_lines + 1] = '1 ' .. word .. ' ' .. details
end

-- Something about the call as a whole: counts for no job.
local function remark(text)
  end_run()
  outcome_lines[#outcome_lines + 1] = '0 ' .. text
end

local function outcomes()
  end_run()
  return table.concat(outcome_lines, '\n')
end
