--[[
Changes the counts of a key without a decision: an operator lifts a ban, resets or grants, and a credit gives units back. A change has one
or more of these members:

  giveBack  a list of { field, number, units }: window `number` of the field gives charged units back
  lift      the ban policy. Ends the strikes and the ban of the plan and of the trial
  reset     the ban policy. Does the same, and removes all counts and reported thresholds, also of windows that are not limited now
  grant     the text of a grant (grants.lua), which replaces the grant; or `none`, which removes the grant
]]

-- Returns the units that a window gives back: none if the hash has another window, and at most the used units.
local function givenBack(stored, field, number, units)
  if numberIn(stored, field) ~= number then return 0 end
  return math.max(0, math.min(units, numberIn(stored, field .. 'Used')))
end

local function giveBack(stored, changes, field, number, units)
  local given, usedField = givenBack(stored, field, number, units), field .. 'Used'
  if given > 0 then
    stored[usedField] = stored[usedField] - given
    changes[usedField] = stored[usedField]
  end
end

-- The new generation makes later calls ignore older strikes and bans, which processes may still send.
local function lift(stored, changes)
  changes.liftedMs = math.max(nowMs, numberIn(stored, 'liftedMs') + 1)
  for _, prefix in ipairs({ '', 'trial:' }) do
    for _, name in ipairs(banNames) do
      if stored[prefix .. name] then changes[prefix .. name] = 0 end
    end
  end
end

local notCounted = { changedMs = true, grant = true, leases = true, liftedMs = true, resetMs = true }

local function reset(stored, changes)
  lift(stored, changes)
  changes.resetMs = changes.liftedMs
  for field in pairs(stored) do
    if not notCounted[field] then changes[field] = false end
  end
end

-- The mark of a leaked secret stays. Returns the end of the grant, epoch ms; 0 if the grant has ended.
local function setGrant(stored, changes, grant)
  local untilMs, mark = tonumber(string.match(grant, '^%d+')) or 0, leakMark(stored)
  if untilMs <= nowMs then untilMs, grant = 0, mark ~= '' and '0' end
  changes.grant = grant and grant .. mark
  return untilMs
end

-- Returns nowMs, and then the fields of the hash with their values.
local function adjust(key, change)
  local stored, changes, untilMs = readHash(key), {}, 0
  if stored.err then return stored end
  for _, units in ipairs(change.giveBack or {}) do giveBack(stored, changes, unpack(units)) end
  if change.lift then lift(stored, changes) end
  if change.reset then reset(stored, changes) end
  -- The generation is needed as long as the longest ban that a process may send.
  local bans = change.reset or change.lift
  if bans then untilMs = changes.liftedMs + bans.maxMs end
  if change.grant then untilMs = math.max(untilMs, setGrant(stored, changes, change.grant)) end
  writeFields(key, changes, untilMs)
  return { nowMs, unpack(redis.call('HGETALL', key)) }
end
