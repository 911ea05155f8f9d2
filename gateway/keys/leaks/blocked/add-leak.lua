#!lua flags=allow-oom
--[[
Stores the leak of a secret of the configuration. The flag `allow-oom` lets this script run when Redis is out of memory, so that a leaked
secret can still be blocked.

KEYS[1] is `<prefix>:leaked-secrets`, a hash. The field `version` is the time of the last change. It is unique, also after a failover to a
server whose clock is behind. For each leaked secret, the field `<digest>` has `1` if the secret has ended or `0` otherwise, a blank, and
the leak as JSON. The field `<digest>:needed` has the last time at which a gateway's configuration had the secret. Times are epoch ms.

ARGV[1] is the digest. ARGV[2] is the value of its field. The reply is `added` or `known`, the value that is stored now, and the version.
]]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local stored = redis.call('HMGET', KEYS[1], ARGV[1], 'version')
local version = tonumber(stored[2]) or 0
if stored[1] and (string.sub(stored[1], 1, 1) == '1' or string.sub(ARGV[2], 1, 1) == '0') then
  return { 'known', stored[1], version }
end
-- A process that reads the leaks in this millisecond considers `nowMs` as known, so the new version must be greater.
version = math.max(nowMs, version) + 1
redis.call('HSET', KEYS[1], 'version', version, ARGV[1], ARGV[2], ARGV[1] .. ':needed', nowMs)
return { 'added', ARGV[2], version }
