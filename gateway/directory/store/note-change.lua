--[[
Notes in a key's counts that its record in the directory has changed. decide-quota.lua compares it with what a process had
read when it read the record, so that none decides on an older record. One note too many is harmless: the record is read
once more.

KEYS[1]  <prefix>:{<key id>}, the hash of decide-quota.lua
ARGV     1 for how long a process may use a record that it has read, and longer, ms

The first write is HSET, which Redis refuses when it is out of memory or read-only: then nothing was changed.
]]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
-- A generation is never given twice, also when a failover brings an older clock.
local changedMs = math.max(nowMs, (tonumber(redis.call('HGET', KEYS[1], 'changedMs')) or 0) + 1)

redis.call('HSET', KEYS[1], 'changedMs', changedMs)
local expiresMs = nowMs + tonumber(ARGV[1])
if redis.call('PTTL', KEYS[1]) + nowMs < expiresMs then redis.call('PEXPIREAT', KEYS[1], expiresMs) end
return changedMs
