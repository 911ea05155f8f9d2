--[[
When each gateway process published last, on Redis's clock: the clocks of processes may differ.

KEYS[1]  the sorted set: each process by when it last published, epoch ms
ARGV     1 the process's id   2 for how long that holds, ms   3 how many processes are kept

Processes that have not published for so long are removed, and beyond the maximum those that published longest ago.
]]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], nowMs, ARGV[1])
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', nowMs - ARGV[2])) do
  redis.call('ZREM', KEYS[1], id)
end
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -ARGV[3] - 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return nowMs
