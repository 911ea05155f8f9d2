--[[
Changes the counts of a key outside of a decision. A change has these members, and each may be absent:

  units   charged units to take back: a list of { field, number of the window, units }
  ban     the field `handBan` of a new ban by hand (bans.lua). It does not shorten a ban, and does not change the level
  lift    true to end the strikes and the bans of the plan and of the trial
  reset   true to do the same, and to remove all counts and reported thresholds. The grant stays
  bans    the ban policy of the key; always present with `ban`, `lift` and `reset`
  grant   the new field `grant` without the mark of a leak (grants.lua); `none` removes the grant
]]
local keptByReset = { changedMs = true, grant = true, leases = true, liftedMs = true, resetMs = true }

local function chargedOf(stored, field, number, units)
  if numberIn(stored, field) ~= number then return 0 end
  return math.max(0, math.min(units, numberIn(stored, field .. 'Used')))
end

-- Each function below adds to `changes`: the new value of a field, or false to remove the field.
local function takeBack(stored, changes, field, number, units)
  local usedField, charged = field .. 'Used', chargedOf(stored, field, number, units)
  if charged == 0 then return end
  -- The list may name a window twice.
  stored[usedField] = numberIn(stored, usedField) - charged
  changes[usedField] = stored[usedField]
end

-- The new generation makes later calls ignore older strikes and bans, which processes may still send during `bans.maxMs`.
local function lift(stored, changes)
  changes.liftedMs = math.max(nowMs, numberIn(stored, 'liftedMs') + 1)
  for _, prefix in ipairs({ '', 'trial:' }) do
    for _, name in ipairs(banNames) do
      if stored[prefix .. name] then changes[prefix .. name] = 0 end
    end
  end
end

local function banByHand(stored, changes, handBan)
  local untilMs = tonumber(string.match(handBan, '^%d+'))
  changes.handBan = handBan
  for _, prefix in ipairs({ '', 'trial:' }) do
    local field = prefix .. 'bannedUntilMs'
    if prefix == '' or stored[field] then changes[field] = math.max(untilMs, numberIn(stored, field)) end
  end
  return untilMs
end

-- Also removes windows that are not limited now.
local function reset(stored, changes)
  changes.resetMs = changes.liftedMs
  for field in pairs(stored) do
    if not keptByReset[field] then changes[field] = false end
  end
end

-- The mark of a leaked secret stays.
local function setGrant(stored, changes, grant)
  local mark, unended = leakMark(stored), unendedGrant({ grant = grant })
  changes.grant = (unended or mark ~= '') and (unended or '0') .. mark
end

local function writeChanges(key, stored, changes)
  local set, removed = {}, {}
  for field, value in pairs(changes) do
    if value then set[#set + 1], set[#set + 2] = field, value
    elseif stored[field] then removed[#removed + 1] = field end
  end
  if #set > 0 then redis.call('HSET', key, unpack(set)) end
  if #removed > 0 then redis.call('HDEL', key, unpack(removed)) end
end

-- Returns nowMs, and then the fields of the hash with their values.
local function adjust(key, change)
  local stored, changes, neededUntilMs = readHash(key), {}, 0
  if stored.err then return stored end
  for _, back in ipairs(change.units or {}) do takeBack(stored, changes, unpack(back)) end
  if change.lift or change.reset then
    lift(stored, changes)
    neededUntilMs = changes.liftedMs + change.bans.maxMs
  end
  if change.reset then reset(stored, changes) end
  if change.ban then neededUntilMs = banByHand(stored, changes, change.ban) + change.bans.maxMs end
  if change.grant then
    setGrant(stored, changes, change.grant)
    neededUntilMs = math.max(neededUntilMs, tonumber(string.match(change.grant, '^%d+')) or 0)
  end
  writeChanges(key, stored, changes)
  prolong(key, neededUntilMs)
  return { nowMs, unpack(redis.call('HGETALL', key)) }
end
