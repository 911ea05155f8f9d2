#!lua flags=allow-oom
--[[
Writes or removes the record of a key, if it is the one that whoever changes it has seen: in that revision, changed at that
instant. A key that was removed and issued again has the same revisions, at other instants. A Redis that is out of memory
runs this all the same (the first line), since a key must be revocable then too. A new key is refused before, when its id is
listed.

KEYS[1]  <prefix>:{<key id>}:key, a hash: revision, record (JSON)
ARGV     1 the revision that was seen; 0: there must be no record   2 the new record; empty: it is removed
         3 `changedMs` of the record that was seen
Reply    `absent`, `changed` (it is another one), or `done`, the revision it has now and the record from before
]]
local expected, record = tonumber(ARGV[1]), ARGV[2]
local stored = redis.call('HMGET', KEYS[1], 'revision', 'record')
local revision = tonumber(stored[1]) or 0

-- The same call once more, after the reply to the first one was lost.
if revision == expected + 1 and stored[2] == record then return { 'done', revision, record } end
local isOther = revision > 0 and string.match(stored[2] or '', '"changedMs":([^,}]+)') ~= ARGV[3]
if revision ~= expected or isOther then return { revision == 0 and 'absent' or 'changed' } end

if record == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('HSET', KEYS[1], 'revision', revision + 1, 'record', record)
end
return { 'done', revision + 1, stored[2] or '' }
