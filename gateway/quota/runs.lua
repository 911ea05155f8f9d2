--[[
The decision of one side on the requests of a call. A run has consecutive requests of equal cost and with the same groups. run.requests is
their number, run.units the cost of each, and run.groups the set of groups that have their operation; absent without groups. Runs are
decided in order of arrival, all at the same time. An admitted request is charged in all windows of the plan and of its groups. A refused
request is charged in none.

An outcome has the numbers of requests that were admitted, refused, banned (refused by a ban) and crowded (over the concurrency limit), and
admittedOf[n], the admitted requests of run n. The refusal that leads to a ban counts as banned.
]]
local noGroups = {}

local function newOutcome()
  return { admitted = 0, refused = 0, banned = 0, crowded = 0, admittedOf = {} }
end

-- A ban is checked first, then the concurrency limit, and then the windows. Without room for one request of a run, there is no room for the
-- rest. `slots` is the number of requests of the call that may begin under the concurrency limit. Returns the number of admitted requests.
local function decideRun(side, requests, units, groups, slots, outcome)
  if isBanned(side) then
    outcome.banned = outcome.banned + requests
    return 0
  end
  local free = slots - outcome.admitted
  local admitted = fitting(requests, units, roomIn(side, groups))
  if admitted > free then admitted = math.max(0, free) end
  outcome.admitted = outcome.admitted + admitted
  if admitted > 0 and units > 0 then charge(side, groups, admitted * units) end
  local rest, isCrowded = requests - admitted, admitted >= free
  if rest > 0 and isCrowded then
    outcome.crowded = outcome.crowded + rest
  elseif rest > 0 then
    local beforeBan = strike(side, rest)
    outcome.refused, outcome.banned = outcome.refused + beforeBan, outcome.banned + rest - beforeBan
  end
  return admitted
end

local function decideRuns(side, runs, slots)
  local outcome = newOutcome()
  for n = 1, #runs do
    local run = runs[n]
    outcome.admittedOf[n] = decideRun(side, run.requests, run.units, run.groups or noGroups, slots, outcome)
  end
  return outcome
end
