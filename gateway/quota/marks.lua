--[[
Marks that a key itself has changed since a process read it. A decision for a process that has read an older key is `stale`.

The hash field `changedMs` is the generation of a key of the directory: the time of its last change. Only keys of the directory have
this field.

If a secret of a key of the configuration has leaked, the field `grant` ends with the time of the leak for a while, for example
`0 leaked 1795`. The mark shares a field that a key rarely has, so a key without a mark costs nothing.
]]
-- As `leakNotedMs` of the gateway.
local leakNotedMs = 3600000

-- nil without a mark.
local function leakedMs(grant)
  return tonumber(string.match(grant, ' leaked (%d+)'))
end

-- The stored generation can be older than the generation that the process has read, if a failover lost the change. If the hash has expired,
-- the generation counts as 0.
local function isStale(stored, ask)
  if ask.changedMs then return ask.changedMs ~= numberIn(stored, 'changedMs') end
  if not stored.grant or #ask.runs == 0 then return false end
  return (leakedMs(stored.grant) or 0) > (ask.leaksReadMs or 0)
end

local function isGrantOver(stored)
  if not stored.grant or unendedGrant(stored) then return false end
  return nowMs > (leakedMs(stored.grant) or 0) + leakNotedMs
end

local function leakMark(stored)
  return stored.grant and string.match(stored.grant, ' leaked %d+') or ''
end

-- Gives a key of the directory a new generation, so that the next decision of each process that has cached the key is stale. With its
-- microseconds, it is unique even after a failover to a server whose clock is behind.
local function giveGeneration(key, keptMs)
  local storedMs = tonumber(redis.call('HGET', key, 'changedMs')) or 0
  redis.call('HSET', key, 'changedMs', math.max(exactNowMs(), storedMs + 1))
  prolong(key, nowMs + keptMs)
end

-- For a process that will cache the key. A hash without a generation gets the present time, and a cached key is used until the stored
-- generation differs. Returns '0' if Redis refuses the write.
local function readGeneration(key, keptMs)
  local generation = redis.call('HGET', key, 'changedMs')
  if not generation then
    generation = string.format('%.17g', exactNowMs())
    local written = redis.pcall('HSET', key, 'changedMs', generation)
    if type(written) == 'table' then return '0' end
  end
  if redis.call('PTTL', key) < keptMs / 2 then pcall(prolong, key, nowMs + keptMs) end
  return generation
end

-- Every process then notices at its next decision that a secret of the key has leaked.
local function noteLeak(key, version, keptMs)
  local stored = readHash(key)
  if stored.err then return stored end
  local grant = string.gsub(stored.grant or '0', ' leaked %d+', '')
  local newest = math.max(version, stored.grant and leakedMs(stored.grant) or 0)
  redis.call('HSET', key, 'grant', grant .. ' leaked ' .. string.format('%.0f', newest))
  prolong(key, nowMs + keptMs)
end
