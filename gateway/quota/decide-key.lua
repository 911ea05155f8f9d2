--[[
Decides keys in one round trip, on Redis's clock. calls/records.ts states the arguments and the reply.

The library rate-limiter-flexible cannot replace this script. Its windows start at a key's first request, but these windows follow the
UTC calendar. It charges one window per round trip, and it charges refused requests. It has no bans that become longer each time.
]]
-- Ends expired strikes, and adds the decisions that a process made without Redis.
local function bringUpToDate(side, unsent, stored)
  endStrikes(side)
  if not unsent then return end
  addUnsent(side, unsent, stored)
  if unsent.strikes > 0 and not isBanned(side) and side.strikes >= side.bans.after then ban(side) end
end

-- Returns the outcomes of the plan and of its trial.
local function decideSides(plan, trial, ask, slots, stored, grant)
  local ofTrial
  readSide(plan, stored)
  openWindows(plan)
  if trial then
    -- The trial begins with the counts of the plan before this call.
    readTrial(trial, plan, stored)
    openWindows(trial)
    if grant then applyGrant(trial, grant) end
    bringUpToDate(trial, ask.unsent, stored)
  end
  if grant then applyGrant(plan, grant) end
  if ask.unsent then addUnsentBan(plan, ask.unsent, stored) end
  bringUpToDate(plan, ask.unsent, stored)
  local ofPlan = decideRuns(plan, ask.runs, slots)
  if trial then ofTrial = decideTrial(trial, ask.runs, slots, ofPlan) end
  return ofPlan, ofTrial
end

-- The time from which the hash has no effect, epoch ms.
local function expiresMs(terms, stored, lease)
  local atMs = sideEndMs(terms.plan)
  if terms.trial then atMs = math.max(atMs, sideEndMs(terms.trial)) end
  if stored.liftedMs then atMs = math.max(atMs, numberIn(stored, 'liftedMs') + terms.plan.bans.maxMs) end
  if lease then atMs = math.max(atMs, nowMs + lease.leaseMs) end
  return atMs
end

-- Requests of a banned key change nothing.
local function hasChanged(side, outcome, stored)
  return outcome.admitted + outcome.refused > 0 or side.bannedUntilMs ~= numberIn(stored, side.banFields[3])
end

local function write(key, terms, ask, stored, leases)
  local plan, trial, changes = terms.plan, terms.trial, {}
  local n = addChanges(changes, 0, plan, stored)
  if trial then n = addChanges(changes, n, trial, stored) end
  if leases and leases ~= stored.leases then changes[n + 1], changes[n + 2] = 'leases', leases end
  if #changes > 0 then redis.call('HSET', key, unpack(changes)) end
  if ask.lease and not leases then remove(key, stored, 'leases') end
  if isGrantOver(stored) then remove(key, stored, 'grant') end
  if plan.prolongs or trial and trial.prolongs or leases then prolong(key, expiresMs(terms, stored, leases and ask.lease)) end
end

local function recordOf(side, outcome, ask, stored, grant, told, ofTrial)
  local record = { outcome.admitted, outcome.refused, outcome.banned, outcome.crowded, #ask.runs > 1 and outcome.admittedOf,
    numberIn(stored, 'liftedMs'), numberIn(stored, 'resetMs'), grant or false, told or false, ofTrial or false, stored.handBan or false,
    side.strikes, side.strikesFromMs, side.bannedUntilMs, side.banLevel, 0, 0, 0, 0 }
  for i = 1, #side.windows do
    record[14 + 2 * i], record[15 + 2 * i] = side.windows[i].number, side.windows[i].used
  end
  return record
end

local function decideKey(key, terms, ask)
  local stored = readHash(key)
  if stored.err then return { error = stored.err } end
  if isStale(stored, ask) then return { stale = true } end
  local plan, trial, grant, slots, others, leases = terms.plan, terms.trial, unendedGrant(stored), math.huge, nil, nil
  if ask.lease then slots, others = freeSlots(stored.leases or '', ask.lease) end
  local ofPlan, ofTrial = decideSides(plan, trial, ask, slots, stored, grant)
  if ask.lease then leases = renewLease(others, ask.lease, ofPlan.admitted) end
  if ask.unsent or ask.lease or hasChanged(plan, ofPlan, stored) or trial and hasChanged(trial, ofTrial, stored) then
    write(key, terms, ask, stored, leases)
  end
  local told = terms.lowest and reachesThreshold(plan, terms.lowest) and (stored.told or '')
  local trialRecord = trial and recordOf(trial, ofTrial, ask, stored, grant)
  return recordOf(plan, ofPlan, ask, stored, grant, told, trialRecord)
end

-- Records of many calls are remembered unpacked. A Function keeps them from call to call.
local known, knownCount, knownMax = {}, 0, 200

local function unpacked(packed)
  local record = known[packed]
  if record then return record end
  if knownCount >= knownMax then known, knownCount = {}, 0 end
  record = cmsgpack.unpack(packed)
  known[packed], knownCount = record, knownCount + 1
  return record
end

-- The arguments are packed records: first all terms, and then an ask for each key. If a key cannot be decided, for example because one of
-- its fields is no number, the other keys are still decided.
local function decideKeys(keys, args)
  local termsCount, reply = #args - #keys, { nowMs }
  for i = 1, #keys do
    local key, ask = keys[i], unpacked(args[termsCount + i])
    local isDone, record = pcall(decideKey, key, unpacked(args[ask.terms]), ask)
    reply[i + 1] = isDone and record or failureOf(key, record)
  end
  return cmsgpack.pack(reply)
end
