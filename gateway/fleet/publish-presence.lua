--[[
What a gateway process says of itself, on Redis's clock: the clocks of processes may differ.

KEYS[1]  the hash: a field for each process   KEYS[2]  the sorted set: each process by when it last published, epoch ms
ARGV     1 the process's id   2 what it says, JSON   3 for how long that holds, ms   4 how many processes are kept

Processes that have not published for so long are removed, and beyond the maximum those that published longest ago.
]]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[2], nowMs, ARGV[1])

local function remove(ids)
  for _, id in ipairs(ids) do
    redis.call('HDEL', KEYS[1], id)
    redis.call('ZREM', KEYS[2], id)
  end
end
remove(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', nowMs - ARGV[3]))
remove(redis.call('ZRANGE', KEYS[2], 0, -ARGV[4] - 1))

redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return nowMs
