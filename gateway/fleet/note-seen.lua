--[[
Records the time at which each gateway process last published its state. The script uses Redis's clock, because the clocks of
processes may differ.

`KEYS[1]` is a sorted set of processes, each with the time at which it last published, epoch ms. `KEYS[2]` is a string with the number of
the last flush (flush/raise-flush.lua). The arguments are the id of the process, the lifetime of an entry in ms, and the largest number of
processes.

The script removes processes that have not published within the lifetime. If too many processes remain, the script removes the processes
that published least recently. The reply is the number of the last flush, or 0.
]]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], nowMs, ARGV[1])
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', nowMs - ARGV[2])) do
  redis.call('ZREM', KEYS[1], id)
end
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -ARGV[3] - 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return tonumber(redis.call('GET', KEYS[2])) or 0
