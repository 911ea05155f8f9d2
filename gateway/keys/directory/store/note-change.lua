#!lua flags=allow-oom
--[[
Stores the time at which a key's record was changed. The time becomes the field `changedMs` of the hash that counts the
key's requests. A process reads this time together with the record. The script decide-quota.lua compares the time that
the process read with the stored time, so no process decides on an outdated record. This script also runs when Redis is
out of memory, like change-record.lua.

KEYS[1] is `<prefix>:{<key id>}`, the hash of decide-quota.lua.
ARGV[1] is the shortest time until the hash expires, in ms. A process caches a record for a shorter time.
]]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
-- The stored time is unique, even after a failover to a server whose clock is behind.
local changedMs = math.max(nowMs, (tonumber(redis.call('HGET', KEYS[1], 'changedMs')) or 0) + 1)
redis.call('HSET', KEYS[1], 'changedMs', changedMs)
local expiresMs = nowMs + tonumber(ARGV[1])
if redis.call('PTTL', KEYS[1]) + nowMs < expiresMs then redis.call('PEXPIREAT', KEYS[1], expiresMs) end
