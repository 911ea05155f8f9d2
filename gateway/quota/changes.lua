--[[
The changes of an operator to the counts of a key. Each function returns nowMs, and then the fields of the hash with their values.
]]
local function changed(key)
  return { nowMs, unpack(redis.call('HGETALL', key)) }
end

-- Ends the strikes and the ban of the plan and of the trial. The new generation makes later calls ignore older strikes and bans, which
-- processes may still send during `maxMs`, the longest ban. Returns the generation.
local function liftBan(key, stored, maxMs)
  local liftedMs = math.max(nowMs, numberIn(stored, 'liftedMs') + 1)
  local changes = { 'liftedMs', liftedMs }
  for _, prefix in ipairs({ '', 'trial:' }) do
    for _, name in ipairs(banNames) do
      if stored[prefix .. name] then
        changes[#changes + 1] = prefix .. name
        changes[#changes + 1] = 0
      end
    end
  end
  redis.call('HSET', key, unpack(changes))
  prolong(key, liftedMs + maxMs)
  return liftedMs
end

-- Removes all counts and reported thresholds, also of windows that are not limited now. Does not remove a grant.
local notCounted = { changedMs = true, grant = true, leases = true, liftedMs = true, resetMs = true }

local function resetCounts(key, stored, maxMs)
  redis.call('HSET', key, 'resetMs', liftBan(key, stored, maxMs))
  for field in pairs(stored) do
    if not notCounted[field] then redis.call('HDEL', key, field) end
  end
end

-- Replaces the grant of a key. The text has the form of the field (grants.lua); an empty text removes the grant. The mark of a leaked
-- secret stays.
local function setGrant(key, stored, grant)
  local untilMs = tonumber(string.match(grant, '^%d+')) or 0
  local mark = leakMark(stored)
  if untilMs > nowMs then
    redis.call('HSET', key, 'grant', grant .. mark)
    prolong(key, untilMs)
  elseif mark ~= '' then
    redis.call('HSET', key, 'grant', '0' .. mark)
  else
    remove(key, stored, 'grant')
  end
end

-- Returns the number of a stored window that has not ended; nil for other windows.
local function openIndex(stored, window, lengthMs)
  local index = tonumber(stored[window])
  return index and index >= windowIndex(lengthMs, nowMs) and index or nil
end

local function usedIn(stored, window)
  return numberIn(stored, window .. 'Used')
end

-- Takes charged units of a window back. The used units never become negative.
local function takeBack(key, stored, window, units)
  local used = usedIn(stored, window)
  if units > 0 and used > 0 then redis.call('HSET', key, window .. 'Used', math.max(0, used - units)) end
end

local verbs = { lift = liftBan, reset = resetCounts, grant = setGrant }

-- Applies a change. @param argument the longest ban in ms, or the grant
local function changeQuota(key, verb, argument)
  local stored = readHash(key)
  if stored.err then return stored end
  verbs[verb](key, stored, argument)
  return changed(key)
end
