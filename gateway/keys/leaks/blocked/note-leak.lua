#!lua flags=allow-oom
--[[
Marks a key of the configuration, so that every process notices at its next decision that a secret of the key has leaked. The mark is a part
of the field `grant`, which decide-quota.lua always reads. A key without a mark therefore costs nothing.

KEYS[1] is `<prefix>:{<key id>}`, the hash of decide-quota.lua. ARGV[1] is the version of the leak (add-leak.lua). ARGV[2] is the shortest
time until the hash expires, in ms. Every process reads all leaks more often than this.
]]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local grant = redis.call('HGET', KEYS[1], 'grant') or '0'
local version = math.max(tonumber(ARGV[1]), tonumber(string.match(grant, ' leaked (%d+)')) or 0)
local others = string.gsub(grant, ' leaked %d+', '')
redis.call('HSET', KEYS[1], 'grant', others .. ' leaked ' .. string.format('%.0f', version))
local expiresMs = nowMs + tonumber(ARGV[2])
if redis.call('PTTL', KEYS[1]) + nowMs < expiresMs then redis.call('PEXPIREAT', KEYS[1], expiresMs) end
