--[[
Asks all gateway processes to send their unsent counts. The script raises the number of the last flush, which each process reads once a
second (note-seen.lua).

`KEYS[1]` is a string with the number of the last flush. The arguments are the lifetime of the number in ms, and the largest age in ms of an
earlier flush that the caller may use. The number is the time of the request on Redis's clock, epoch ms, so the numbers ascend even after
the key has expired.

The reply is the new number, or the number of the earlier flush.
]]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local last = tonumber(redis.call('GET', KEYS[1])) or 0
if nowMs - last < tonumber(ARGV[2]) then return last end
local number = math.max(nowMs, last + 1)
redis.call('SET', KEYS[1], string.format('%.0f', number), 'PX', ARGV[1])
return number
