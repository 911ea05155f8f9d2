--[[
Writes or removes the record of a key if the record still has the revision and `changedMs` that the caller has read. The revision alone is
not enough, because a key that was removed and issued again starts at revision 1 again.
The script also gives the key a new generation. A process that has cached the key has read the earlier generation, so its next decision
about the key is `stale`. The script calls functions of the chapters in `quota/`, which the gateway puts before this script.
The flag `allow-oom` lets this script run when Redis is out of memory, so that keys can still be revoked. When Redis is out of memory, no
new key reaches this script, because list-id.lua runs first and lacks the flag `allow-oom`.

KEYS[1] is `<prefix>:{<key id>}:key`, a hash with the fields revision, record (JSON) and tag (list-id.lua).
KEYS[2] is `<prefix>:{<key id>}:removed`, a hash with the `createdMs` of recently removed keys with this id.
KEYS[3] is `<prefix>:{<key id>}`, the hash with the counts and the generation of the key (`quota/marks.lua`).
ARGV[1] is the expected revision, or 0 for a new key. ARGV[2] is the new record, or empty to remove the key. ARGV[3] is the expected
`changedMs` of the record. ARGV[7] is how long the `createdMs` of a removed key is kept, in ms. ARGV[8] is the shortest time until KEYS[3]
expires, in ms.
The other arguments are used only for a new key. ARGV[4] is the tag of the key. ARGV[5] is the maximum age of the tag, in ms. ARGV[6] is
`once` to refuse a key that was already created and removed.
The reply begins with `absent`, `changed` (another version is stored), `late`, `removed` or `done`. The revision, the old record and the
tag follow.
]]
local expected, record = tonumber(ARGV[1]), ARGV[2]
local stored = redis.call('HMGET', KEYS[1], 'revision', 'record', 'tag')
local revision, before, tag = tonumber(stored[1]) or 0, stored[2] or '', stored[3] or ''

-- The caller repeats a call whose reply was lost.
if revision == expected + 1 and before == record then return { 'done', revision, record, tag } end
local isOther = revision > 0 and string.match(before, '"changedMs":([^,}]+)') ~= ARGV[3]
if revision ~= expected or isOther then
  return { revision == 0 and 'absent' or 'changed', revision, before, tag }
end

local generationKeptMs = tonumber(ARGV[8])

local function createdMsOf(json)
  return string.format('%.0f', cjson.decode(json).createdMs)
end

-- `giveGeneration` is the first write. If KEYS[3] is not a hash, the script ends there and changes nothing.
if expected == 0 then
  if ARGV[6] == 'once' and redis.call('HGET', KEYS[2], createdMsOf(record)) then return { 'removed', 0, '', '' } end
  tag = ARGV[4]
  local listedMs = tonumber(string.match(tag, '^%x+'), 16)
  if nowMs > listedMs + ARGV[5] then return { 'late', 0, '', '' } end
  giveGeneration(KEYS[3], generationKeptMs)
  redis.call('HSET', KEYS[1], 'revision', 1, 'record', record, 'tag', tag)
elseif record == '' then
  giveGeneration(KEYS[3], generationKeptMs)
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[2], createdMsOf(before), 1)
  redis.call('PEXPIRE', KEYS[2], ARGV[7])
else
  giveGeneration(KEYS[3], generationKeptMs)
  redis.call('HSET', KEYS[1], 'revision', revision + 1, 'record', record)
end
return { 'done', revision + 1, before, tag }
