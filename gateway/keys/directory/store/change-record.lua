#!lua flags=allow-oom
--[[
Writes or removes the record of a key, if it is the one that whoever changes it has seen: in that revision, changed at that
instant. A key that was removed and issued again has the same revisions, at other instants. A Redis that is out of memory
runs this all the same (the first line), since a key must be revocable then too. A new key is refused before, when its id is
listed.

KEYS[1]  <prefix>:{<key id>}:key, a hash: revision, record (JSON), tag (list-id.lua)
KEYS[2]  <prefix>:{<key id>}:removed, a hash: `createdMs` of each key with this id that was removed lately
ARGV     1 the revision that was seen; 0: there must be no record   2 the new record; empty: it is removed
         3 `changedMs` of the record that was seen
         4 of a new key: its tag   5 for how long after the time of the tag it may be written, ms
         6 of a new key: `once` when it is not to be created again after it was removed
         7 for how long `createdMs` of a removed key is kept, ms
Reply    `absent`, `changed` (it is another one), `late`, `removed` or `done`; the revision, the record from before, and the tag
]]
local expected, record = tonumber(ARGV[1]), ARGV[2]
local stored = redis.call('HMGET', KEYS[1], 'revision', 'record', 'tag')
local revision, before, tag = tonumber(stored[1]) or 0, stored[2] or '', stored[3] or ''

-- The same call once more, after the reply to the first one was lost.
if revision == expected + 1 and before == record then return { 'done', revision, record, tag } end
local isOther = revision > 0 and string.match(before, '"changedMs":([^,}]+)') ~= ARGV[3]
if revision ~= expected or isOther then
  return { revision == 0 and 'absent' or 'changed', revision, before, tag }
end

local function createdMsOf(json)
  return string.format('%.0f', cjson.decode(json).createdMs)
end

if expected == 0 then
  if ARGV[6] == 'once' and redis.call('HGET', KEYS[2], createdMsOf(record)) then return { 'removed', 0, '', '' } end
  tag = ARGV[4]
  local time = redis.call('TIME')
  local listedMs = tonumber(string.match(tag, '^%x+'), 16)
  if time[1] * 1000 + time[2] / 1000 > listedMs + ARGV[5] then return { 'late', 0, '', '' } end
  redis.call('HSET', KEYS[1], 'revision', 1, 'record', record, 'tag', tag)
elseif record == '' then
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[2], createdMsOf(before), 1)
  redis.call('PEXPIRE', KEYS[2], ARGV[7])
else
  redis.call('HSET', KEYS[1], 'revision', revision + 1, 'record', record)
end
return { 'done', revision + 1, before, tag }
