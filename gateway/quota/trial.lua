--[[
The trial of a plan: a second side with limits, strikes and a ban of its own. A trial refuses no request. It has the same windows as its
plan (limit math.huge: none).

The hash field `trial` has the differences between the counts of the trial and the counts of the plan, so a request that was decided
without the trial counts in the trial as in the plan. The field is packed with `struct`: strikes, strikesFromMs, bannedUntilMs and
banLevel of the trial, the set of the windows, and for each window its number and the difference of the used units. A key whose counts
are equal has no such field. The difference of an ended window has no effect. If the set of the windows has changed, the field has no
effect.
]]
local function trialForm(trial)
  return '<I4ddI2B' .. string.rep('I5d', #trial.windows)
end

-- Returns the differences in the field; nil without a field for these windows.
local function differencesIn(field, trial)
  local form = trialForm(trial)
  if not field or #field ~= struct.size(form) then return nil end
  local differences = { struct.unpack(form, field) }
  return differences[5] == trial.windowSet and differences or nil
end

-- Sets the counts of the trial, from the counts of the plan before the call, whose windows are open.
local function readTrial(trial, plan, field)
  local differences = differencesIn(field, trial)
  for i = 1, #banFields do trial[banFields[i]] = differences and differences[i] or plan[banFields[i]] end
  for i = 1, #trial.windows do
    local window, ofPlan = trial.windows[i], plan.windows[i]
    window.number, window.used, window.inForce = ofPlan.number, ofPlan.used, window.limit
    if differences and differences[4 + 2 * i] == ofPlan.number then
      window.used = math.max(0, ofPlan.used + differences[5 + 2 * i])
    end
  end
  trial.prolongs = false
end

-- Returns the field for the counts of the trial; nil if they are equal to the counts of the plan.
local function trialField(trial, plan)
  local differs, differences = false, {}
  for i = 1, #banFields do differs = differs or trial[banFields[i]] ~= plan[banFields[i]] end
  for i = 1, #trial.windows do
    local difference = trial.windows[i].used - plan.windows[i].used
    differs = differs or difference ~= 0
    differences[2 * i - 1], differences[2 * i] = trial.windows[i].number, difference
  end
  if not differs then return nil end
  return struct.pack(trialForm(trial), trial.strikes, trial.strikesFromMs, trial.bannedUntilMs, trial.banLevel, trial.windowSet,
    unpack(differences))
end

-- Returns the field without the strikes and the ban of the trial, which are the first 22 octets.
local function withoutBan(field)
  return string.rep('\0', 22) .. string.sub(field, 23)
end

-- Returns the largest cost of a request that the windows decide. A request that costs more would get 403, and would not be charged.
-- If only a grant makes a limit lower than the cost, a window would refuse the request.
local function mostUnits(trial)
  local lowest, lowestInForce = math.huge, math.huge
  for i = 1, #trial.windows do
    lowest = math.min(lowest, trial.windows[i].limit)
    lowestInForce = math.min(lowestInForce, trial.windows[i].inForce)
  end
  return math.max(lowest, lowestInForce)
end

-- Decides the runs with the limits of the trial. The concurrency limit refuses the same requests as for the plan, unless the trial
-- has banned the key.
local function decideTrial(trial, runs, slots, ofPlan)
  local outcome, most, room, places = newOutcome(), mostUnits(trial), roomIn(trial), slots
  for n = 1, #runs do
    local requests, units = runs[n].requests, runs[n].trialUnits or runs[n].units
    local left = places - ofPlan.admittedOf[n]
    local crowdedOut = left > 0 and 0 or requests - math.min(requests, math.max(0, places))
    if units > most then units = 0 end
    outcome.admittedOf[n] = decideRun(trial, requests - crowdedOut, units, room, math.huge, outcome)
    if isBanned(trial) then outcome.banned = outcome.banned + crowdedOut end
    places = left
  end
  if outcome.charged > 0 then charge(trial, outcome.charged) end
  return outcome
end
