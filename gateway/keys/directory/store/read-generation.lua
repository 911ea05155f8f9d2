--[[
Returns the generation of a key for a process that will cache the key. The generation is the field `changedMs` of the hash that counts the
key's requests. If the hash has no generation, for example because the hash has expired, the script stores the present time as the
generation. A cached key is used until the stored generation differs, so an expired hash also makes the cached key outdated.

KEYS[1] is `<prefix>:{<key id>}`, the hash of decide-quota.lua.
ARGV[1] is how long the generation is kept, in ms. If the hash expires in less than half of this time, the script extends the expiry.
The reply is the generation as text. The reply is `0` if the hash has no generation and Redis refuses writes.
]]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + time[2] / 1000
local generation = redis.call('HGET', KEYS[1], 'changedMs')
if not generation then
  -- With microseconds, a generation that Redis has lost is not stored again for a later version of the key.
  generation = string.format('%.17g', nowMs)
  local written = redis.pcall('HSET', KEYS[1], 'changedMs', generation)
  if type(written) == 'table' then return '0' end
end
if redis.call('PTTL', KEYS[1]) < ARGV[1] / 2 then redis.pcall('PEXPIREAT', KEYS[1], math.ceil(nowMs) + ARGV[1]) end
return generation
