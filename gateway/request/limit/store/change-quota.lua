--[[
What people do to a key's counts, on Redis's clock: the same as liftBan, resetQuota and setGrant in decide-quota.ts, whose
hash it is.

KEYS[1]  <prefix>:{<key id>}
ARGV     1 `lift` or `reset`   2 the longest ban, ms: an older ban or strike may still arrive within this time
                               3, 4, … `reset` only: the names of all windows
     or  1 `grant`             2 the field `grant` (decide-quota.lua), or nothing to take away the one that is there
Reply    nowMs, then all fields of the hash and their values

The first write of each verb is one that Redis refuses when it is read-only, and HSET also when it is out of memory: then
nothing was changed.
]]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local expiresMs = 0

if ARGV[1] == 'grant' then
  local untilMs = tonumber(string.match(ARGV[2], '^%d+')) or 0
  if untilMs > nowMs then
    redis.call('HSET', KEYS[1], 'grant', ARGV[2])
    expiresMs = untilMs
  else
    redis.call('HDEL', KEYS[1], 'grant')
  end
else
  local liftedMs = math.max(nowMs, (tonumber(redis.call('HGET', KEYS[1], 'liftedMs')) or 0) + 1)
  redis.call('HSET', KEYS[1], 'strikes', 0, 'strikesFromMs', 0, 'bannedUntilMs', 0, 'banLevel', 0, 'liftedMs', liftedMs)
  if ARGV[1] == 'reset' then
    redis.call('HSET', KEYS[1], 'resetMs', liftedMs)
    for i = 3, #ARGV do redis.call('HDEL', KEYS[1], ARGV[i], ARGV[i] .. 'Used') end
  end
  expiresMs = liftedMs + tonumber(ARGV[2])
end
-- The hash lives a second longer, as in decide-quota.lua. A hash that is new has no expiry: PTTL says -1.
expiresMs = expiresMs + 1000
if redis.call('PTTL', KEYS[1]) + nowMs < expiresMs then redis.call('PEXPIREAT', KEYS[1], expiresMs) end

return { nowMs, unpack(redis.call('HGETALL', KEYS[1])) }
