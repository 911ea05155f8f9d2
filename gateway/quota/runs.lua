--[[
The decision of one side on the requests of a call. A run has consecutive requests of equal cost: run.requests is their number and
run.units the cost of each. Runs are decided in order of arrival, all at the same time. An admitted request is charged in all windows.
A refused request is charged in no window.

An outcome has the numbers of requests that were admitted, refused, banned (refused by a ban) and crowded (over the concurrency
limit), the charged units, and admittedOf[n], the admitted requests of run n.
]]
local function newOutcome()
  return { admitted = 0, refused = 0, banned = 0, crowded = 0, charged = 0, admittedOf = {} }
end

-- Decides the requests of a run. A ban is checked first, then the concurrency limit, and then the windows. Once there is no room for
-- one request of a run, there is no room for the rest of the run. `slots` is the number of requests of the call that may begin under
-- the concurrency limit, and `room` the units that the windows had room for before the call. Returns the number of admitted requests.
local function decideRun(side, requests, units, room, slots, outcome)
  if isBanned(side) then
    outcome.banned = outcome.banned + requests
    return 0
  end
  local free = slots - outcome.admitted
  local admitted = fitting(requests, units, room - outcome.charged)
  if admitted > free then admitted = math.max(0, free) end
  outcome.admitted, outcome.charged = outcome.admitted + admitted, outcome.charged + admitted * units
  local rest = requests - admitted
  if rest > 0 and admitted >= free then
    outcome.crowded = outcome.crowded + rest
  elseif rest > 0 then
    local refused = strike(side, rest)
    outcome.refused, outcome.banned = outcome.refused + refused, outcome.banned + rest - refused
  end
  return admitted
end

-- Decides all runs, and charges the windows once.
local function decideRuns(side, runs, slots)
  local outcome, room = newOutcome(), roomIn(side)
  for n = 1, #runs do
    outcome.admittedOf[n] = decideRun(side, runs[n].requests, runs[n].units, room, slots, outcome)
  end
  if outcome.charged > 0 then charge(side, outcome.charged) end
  return outcome
end
