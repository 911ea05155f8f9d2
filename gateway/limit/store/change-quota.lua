--[[
What people do to a key's counts, on Redis's clock: the same as liftBan and resetQuota in decide-quota.ts, whose hash it is.

KEYS[1]  <prefix>:{<key id>}
ARGV     1 `lift` or `reset`   2 the longest ban, ms: for so long an older ban or strike may still arrive
Reply    nowMs, then all fields of the hash and their values

The first write is HSET, which Redis refuses when it is out of memory or read-only: then nothing was changed.
]]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local liftedMs = math.max(nowMs, (tonumber(redis.call('HGET', KEYS[1], 'liftedMs')) or 0) + 1)

redis.call('HSET', KEYS[1], 'strikes', 0, 'strikesFromMs', 0, 'bannedUntilMs', 0, 'banLevel', 0, 'liftedMs', liftedMs)
if ARGV[1] == 'reset' then
  redis.call('HSET', KEYS[1], 'resetMs', liftedMs)
  for _, window in ipairs({ 'second', 'minute', 'hour', 'day', 'month' }) do
    redis.call('HDEL', KEYS[1], window, window .. 'Used')
  end
end
local expiresMs = liftedMs + tonumber(ARGV[2])
if redis.call('PTTL', KEYS[1]) + nowMs < expiresMs then redis.call('PEXPIREAT', KEYS[1], expiresMs) end

return { nowMs, unpack(redis.call('HGETALL', KEYS[1])) }
