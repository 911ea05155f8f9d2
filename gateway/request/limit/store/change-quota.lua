--[[
Applies an operator's change to the counts of a key: it lifts a ban, resets all counts, or sets a grant (temporary limits). A reset
also removes the reported thresholds, so that they are reported again. A change applies to the counts of the plan and of the trial.
The script does the same as liftBan, resetQuota and setGrant in decide-quota.ts. The script changes the hash that decide-quota.lua
describes. The script uses Redis's clock.

KEYS[1] is `<prefix>:{<key id>}`. ARGV[1] is `lift`, `reset` or `grant`.
For `lift` and `reset`, ARGV[2] is the maximum length of a ban in ms. The hash keeps `liftedMs` at least for this time,
because processes may still send older bans and strikes.
For `reset`, the further arguments are the names of all windows.
For `grant`, ARGV[2] is the value of the field `grant` (decide-quota.lua), or an empty string to remove the grant.
The reply is nowMs, then all fields of the hash and their values.

Redis refuses every write while it is read-only, and refuses HSET while it is out of memory. A refused write ends the script. The write that
Redis may refuse is the script's first write.
]]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local expiresMs = 0

if ARGV[1] == 'grant' then
  local untilMs = tonumber(string.match(ARGV[2], '^%d+')) or 0
  -- The mark of a leaked secret is not a part of the grant.
  local leaked = string.match(redis.call('HGET', KEYS[1], 'grant') or '', ' leaked %d+')
  if untilMs > nowMs then
    redis.call('HSET', KEYS[1], 'grant', ARGV[2] .. (leaked or ''))
    expiresMs = untilMs
  elseif leaked then
    redis.call('HSET', KEYS[1], 'grant', '0' .. leaked)
  else
    redis.call('HDEL', KEYS[1], 'grant')
  end
else
  local liftedMs = math.max(nowMs, (tonumber(redis.call('HGET', KEYS[1], 'liftedMs')) or 0) + 1)
  redis.call('HSET', KEYS[1], 'strikes', 0, 'strikesFromMs', 0, 'bannedUntilMs', 0, 'banLevel', 0, 'liftedMs', liftedMs)
  -- The first 22 octets of the field `trial` are the strikes and the ban of the trial.
  local trial = redis.call('HGET', KEYS[1], 'trial')
  if trial then redis.call('HSET', KEYS[1], 'trial', string.rep('\0', 22) .. string.sub(trial, 23)) end
  if ARGV[1] == 'reset' then
    redis.call('HSET', KEYS[1], 'resetMs', liftedMs)
    redis.call('HDEL', KEYS[1], 'told', 'trial')
    for i = 3, #ARGV do redis.call('HDEL', KEYS[1], ARGV[i], ARGV[i] .. 'Used') end
  end
  expiresMs = liftedMs + tonumber(ARGV[2])
end
-- The hash expires one second later than necessary, as in decide-quota.lua. PTTL returns -1 for a new hash without expiry.
expiresMs = expiresMs + 1000
if redis.call('PTTL', KEYS[1]) + nowMs < expiresMs then redis.call('PEXPIREAT', KEYS[1], expiresMs) end

return { nowMs, unpack(redis.call('HGETALL', KEYS[1])) }
