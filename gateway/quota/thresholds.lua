--[[
Reported thresholds. The hash field `told` has, for each window with a reported threshold, its name, its number, and the highest
reported percentage, for example `day 20700 80 month 680 100`. Each decision returns the field from the lowest percentage on, so no
report is lost when a process dies. The gateway computes which percentages are missing.
]]
local thresholdWindows = { 'hour', 'day', 'month' }

-- Whether an hour, day or month has reached the lowest percentage of its limit.
local function reachesThreshold(side, lowest)
  for i = 1, #side.windows do
    local window = side.windows[i]
    if window.isReported and 100 * window.used >= lowest * window.inForce then return true end
  end
  return false
end

-- Returns the reported percentage of a window; nil without a report.
local function toldPercent(stored, window, number)
  return tonumber(string.match(stored.told or '', window .. ' ' .. number .. ' (%d+)'))
end

-- Marks a percentage as reported, after the queue of webhooks has stored the report. The mark never decreases. Marks of ended windows
-- are dropped. Returns 1 if the mark is stored; 0 if the window has ended, or if the counts were reset meanwhile.
local function confirmTold(key, reported, index, percent, resetMs)
  local stored = readHash(key)
  if stored.err then return stored end
  if numberIn(stored, 'resetMs') ~= resetMs or tonumber(stored[reported]) ~= index then return 0 end
  local marks = {}
  for _, window in ipairs(thresholdWindows) do
    local number = stored[window]
    local told = number and toldPercent(stored, window, number)
    if window == reported then told = math.max(told or 0, percent) end
    if told then marks[#marks + 1] = window .. ' ' .. number .. ' ' .. told end
  end
  redis.call('HSET', key, 'told', table.concat(marks, ' '))
  return 1
end
