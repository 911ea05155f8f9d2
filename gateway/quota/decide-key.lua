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
  if unsent.strikes > 0 and side.strikes >= side.bans.after then ban(side) end
end

-- Decides the runs for the plan and for its trial. Returns both outcomes.
local function decideSides(plan, trial, ask, slots, stored, grant)
  local unsent, ofTrial = ask.unsent, nil
  readSide(plan, stored)
  openWindows(plan)
  if grant then applyGrant(plan, grant) end
  -- The trial begins with the counts of the plan before this call.
  if trial then readTrial(trial, plan, stored.trial) end
  if trial and grant then applyGrant(trial, grant) end
  bringUpToDate(plan, unsent, stored)
  local ofPlan = decideRuns(plan, ask.runs, slots)
  if trial then
    bringUpToDate(trial, unsent and (unsent.trial or unsent), stored)
    ofTrial = decideTrial(trial, ask.runs, slots, ofPlan)
  end
  return ofPlan, ofTrial
end

-- Returns the time from which the hash has no effect, epoch ms.
local function expiresMs(terms, stored, lease)
  local plan = terms.plan
  local atMs = math.max(windowsEndMs(plan), bansEndMs(plan))
  if terms.trial then atMs = math.max(atMs, bansEndMs(terms.trial)) end
  if stored.liftedMs then atMs = math.max(atMs, numberIn(stored, 'liftedMs') + plan.bans.maxMs) end
  if lease then atMs = math.max(atMs, nowMs + lease.leaseMs) end
  return atMs
end

-- Writes what the call has changed. Requests of a banned key change nothing, so nothing is written.
local function write(key, terms, ask, stored, ofPlan, leases)
  local plan, trial = terms.plan, terms.trial
  local trialText = trial and trialField(trial, plan)
  local hasChanged = ofPlan.admitted + ofPlan.refused > 0 or plan.bannedUntilMs ~= numberIn(stored, 'bannedUntilMs')
    or ask.unsent or ask.lease or trial and trialText ~= stored.trial
  if not hasChanged then return end
  local changes = changesOf(plan, stored)
  if trialText then addText(changes, stored, 'trial', trialText) end
  if leases then addText(changes, stored, 'leases', leases) end
  if #changes > 0 then redis.call('HSET', key, unpack(changes)) end
  if trial and not trialText then remove(key, stored, 'trial') end
  if ask.lease and not leases then remove(key, stored, 'leases') end
  if isGrantOver(stored) then remove(key, stored, 'grant') end
  if plan.prolongs or trial and trial.prolongs or leases then prolong(key, expiresMs(terms, stored, leases and ask.lease)) end
end

-- Returns the part of the reply that concerns a side.
local function recordOf(side, outcome, ask, stored, grant, told, ofTrial)
  local record = { outcome.admitted, outcome.refused, outcome.banned, outcome.crowded, #ask.runs > 1 and outcome.admittedOf,
    numberIn(stored, 'liftedMs'), numberIn(stored, 'resetMs'), grant or false, told or false, ofTrial or false,
    side.strikes, side.strikesFromMs, side.bannedUntilMs, side.banLevel, 0, 0, 0, 0 }
  for i = 1, #side.windows do
    record[13 + 2 * i], record[14 + 2 * i] = side.windows[i].number, side.windows[i].used
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
  write(key, terms, ask, stored, ofPlan, leases)
  local told = terms.lowest and reachesThreshold(plan, terms.lowest) and (stored.told or '')
  local trialRecord = trial and recordOf(trial, ofTrial, ask, stored, grant)
  return recordOf(plan, ofPlan, ask, stored, grant, told, trialRecord)
end

-- Records that come in many calls are remembered unpacked. A Function keeps them from call to call.
local known, knownCount, knownMax = {}, 0, 200

local function unpacked(packed)
  local record = known[packed]
  if record then return record end
  if knownCount >= knownMax then known, knownCount = {}, 0 end
  record = cmsgpack.unpack(packed)
  known[packed], knownCount = record, knownCount + 1
  return record
end

-- The arguments are packed records: first all terms, and then what is asked of each key. If a key cannot be decided, for example because
-- one of its fields is no number, the other keys are still decided.
local function decideKeys(keys, args)
  local termsCount, reply = #args - #keys, { nowMs }
  for i = 1, #keys do
    local ask = unpacked(args[termsCount + i])
    local isDone, record = pcall(decideKey, keys[i], unpacked(args[ask.terms]), ask)
    reply[i + 1] = isDone and record or { error = type(record) == 'table' and record.err or record }
  end
  return cmsgpack.pack(reply)
end
