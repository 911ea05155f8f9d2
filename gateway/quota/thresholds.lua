--[[
Reported thresholds. The hash field `told` has, for each window with a reported threshold, its field, its number, and the highest reported
percentage, for example `day 20700 80 reports:month 680 100`. Each decision returns `told` from the lowest percentage on, so no report is
lost when a process dies. The gateway computes which percentages are missing.
]]
-- In an hour, day or month.
local function reachesThreshold(side, lowest)
  for i = 1, #side.windows do
    local window = side.windows[i]
    if window.isReported and 100 * window.used >= lowest * window.inForce then return true end
  end
  return false
end

-- Marks a percentage of a window as reported, after the queue of webhooks has stored the report. The mark never decreases. Returns 1 if the
-- mark is stored; 0 if the window has ended, or if the counts were reset meanwhile.
local function confirmTold(key, field, index, percent, resetMs)
  local stored = readHash(key)
  if stored.err then return stored end
  if numberIn(stored, 'resetMs') ~= resetMs or tonumber(stored[field]) ~= index then return 0 end
  local marks = {}
  for marked, number, told in string.gmatch(stored.told or '', '(%S+) (%d+) (%d+)') do
    if marked == field and tonumber(number) == index then
      percent = math.max(percent, told)
    elseif marked ~= field and number == stored[marked] then
      marks[#marks + 1] = marked .. ' ' .. number .. ' ' .. told
    end
  end
  marks[#marks + 1] = field .. ' ' .. index .. ' ' .. percent
  redis.call('HSET', key, 'told', table.concat(marks, ' '))
  return 1
end
