--[[
The trial of a plan: a second side with limits, strikes and a ban of its own, which refuses no request. Its hash fields have the
prefix `trial:`. A field that the hash does not have is copied from the plan: in the first call of a trial, in the first call with a further
window, and after a reset, which removes all counts.
]]

-- `plan` has the counts before the call, with open windows.
local function readTrial(trial, plan, stored)
  readSide(trial, stored)
  if not stored[trial.banFields[1]] then
    for i = 1, #banNames do trial[banNames[i]] = plan[banNames[i]] end
    trial.begins = true
  end
  for i = 1, #trial.windows do
    local window = trial.windows[i]
    local ofPlan = plan.windows[window.ofPlan]
    if ofPlan and not stored[window.field] then window.number, window.used = ofPlan.number, ofPlan.used end
  end
end

-- Above the limits with and without the grant. Such a request would get 403, and would not be charged. If only a grant makes a limit lower
-- than the cost, a window would refuse the request.
local function costsTooMuch(trial, groups, units)
  local isAboveLimit, isAboveGrant = false, false
  for i = 1, #trial.windows do
    local window = trial.windows[i]
    if not window.group or groups[window.group] then
      isAboveLimit, isAboveGrant = isAboveLimit or units > window.limit, isAboveGrant or units > window.inForce
    end
  end
  return isAboveLimit and isAboveGrant
end

-- The concurrency limit refuses the same requests as for the plan, unless the trial has banned the key.
local function decideTrial(trial, runs, slots, ofPlan)
  -- The slots that the earlier runs of the plan have left.
  local outcome, places = newOutcome(), slots
  for n = 1, #runs do
    local run = runs[n]
    local units, groups = run.trialUnits or run.units, run.trialGroups or noGroups
    local left = places - ofPlan.admittedOf[n]
    local crowdedOut = left > 0 and 0 or run.requests - math.min(run.requests, math.max(0, places))
    if units > 1 and costsTooMuch(trial, groups, units) then units = 0 end
    outcome.admittedOf[n] = decideRun(trial, run.requests - crowdedOut, units, groups, math.huge, outcome)
    if isBanned(trial) then outcome.banned = outcome.banned + crowdedOut end
    places = left
  end
  return outcome
end
