#!lua flags=allow-oom
--[[
Writes or removes the record of a key, if it has the revision that whoever changes it has seen. A Redis that is out of memory
runs this all the same (the first line), since a key must be revocable then too. A new key is refused before, when its id is
listed.

KEYS[1]  <prefix>:{<key id>}:key, a hash: revision, record (JSON)
ARGV     1 the revision that was seen; 0: there must be no record   2 the new record; empty: it is removed
Reply    `absent`, `changed` (it has another revision), or `done`, the revision it has now and the record from before
]]
local expected, record = tonumber(ARGV[1]), ARGV[2]
local stored = redis.call('HMGET', KEYS[1], 'revision', 'record')
local revision = tonumber(stored[1]) or 0

-- The same call once more, after the reply to the first one was lost.
if revision == expected + 1 and stored[2] == record then return { 'done', revision, record } end
if revision ~= expected then return { revision == 0 and 'absent' or 'changed' } end

if record == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('HSET', KEYS[1], 'revision', revision + 1, 'record', record)
end
return { 'done', revision + 1, stored[2] or '' }
