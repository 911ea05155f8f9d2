#!lua flags=allow-oom
--[[
Notes in the counts of a key that its record changes. decide-quota.lua compares the note with the one that a process found when
it read the record, so that none decides on an older record. A Redis that is out of memory runs this too, like change-record.lua.

KEYS[1]  <prefix>:{<key id>}, the hash of decide-quota.lua
ARGV     1 for how long a process may use a record that it has read, and longer, ms
]]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
-- No note is given twice, also when a failover brings an older clock.
local changedMs = math.max(nowMs, (tonumber(redis.call('HGET', KEYS[1], 'changedMs')) or 0) + 1)
redis.call('HSET', KEYS[1], 'changedMs', changedMs)
local expiresMs = nowMs + tonumber(ARGV[1])
if redis.call('PTTL', KEYS[1]) + nowMs < expiresMs then redis.call('PEXPIREAT', KEYS[1], expiresMs) end
