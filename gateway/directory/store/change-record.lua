#!lua flags=allow-oom
--[[
Writes or removes the record of a key, if it has the revision that whoever changes it has seen, and notes that in the key's
counts. decide-quota.lua compares the note with the one that a process found when it read the record, so that none decides on
an older record.

Both at once, so that nobody reads the record of after the change with the note of before. A Redis that is out of memory runs
this all the same (the first line), since a key must be revocable then too. It is no transaction (MULTI), which Redis would
refuse then. A new key is refused before, when its id is listed.

KEYS[1]  <prefix>:{<key id>}:key, a hash: revision, record (JSON)
KEYS[2]  <prefix>:{<key id>}, the hash of decide-quota.lua
ARGV     1 the revision that was seen; 0: there must be no record   2 the new record; empty: it is removed
         3 for how long a process may use a record that it has read, and longer, ms
Reply    `absent`, `changed` (it has another revision), or `done`, the revision it has now and the record from before
]]
local expected, record = tonumber(ARGV[1]), ARGV[2]
local stored = redis.call('HMGET', KEYS[1], 'revision', 'record')
local revision = tonumber(stored[1]) or 0

-- The same call once more, after the reply to the first one was lost.
if revision == expected + 1 and stored[2] == record then return { 'done', revision, record } end
if revision ~= expected then return { revision == 0 and 'absent' or 'changed' } end

local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
-- No note is given twice, also when a failover brings an older clock.
local changedMs = math.max(nowMs, (tonumber(redis.call('HGET', KEYS[2], 'changedMs')) or 0) + 1)
redis.call('HSET', KEYS[2], 'changedMs', changedMs)
local expiresMs = nowMs + tonumber(ARGV[3])
if redis.call('PTTL', KEYS[2]) + nowMs < expiresMs then redis.call('PEXPIREAT', KEYS[2], expiresMs) end

if record == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('HSET', KEYS[1], 'revision', revision + 1, 'record', record)
end
return { 'done', revision + 1, stored[2] or '' }
