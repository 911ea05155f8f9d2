--[[
Counts the processes that check each target.

Each of `KEYS` is the count of one target: the current period, the number of processes in this period, and the number of processes in the
period before. The arguments are the length of a period in ms, and for each key the last period in which this process was counted. A process
is counted once per period.

Returns the current period, and for each key the larger of the two numbers.
]]
local time = redis.call('TIME')
local periodMs = tonumber(ARGV[1])
local period = math.floor((time[1] * 1000 + math.floor(time[2] / 1000)) / periodMs)
local reply = { period }
for i = 1, #KEYS do
  local key = KEYS[i]
  local stored, count, before = string.match(redis.call('GET', key) or '', '^(%d+) (%d+) (%d+)$')
  stored, count, before = tonumber(stored) or 0, tonumber(count) or 0, tonumber(before) or 0
  if stored == period - 1 then
    count, before = 0, count
  elseif stored ~= period then
    count, before = 0, 0
  end
  if tonumber(ARGV[i + 1]) ~= period then
    count = count + 1
    redis.call('SET', key, period .. ' ' .. count .. ' ' .. before, 'PX', 2 * periodMs)
  end
  reply[i + 1] = math.max(count, before)
end
return reply
