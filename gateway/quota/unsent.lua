--[[
The decisions that a process made without Redis, and sends now: strikes, bannedUntilMs, banLevel, and for each window of the plan its number
and the units that the process charged. liftedMs and resetMs are the generation in the last reply that the process received. A trial adds
the same units and strikes, as if it had decided as the plan did. It does not add the ban, because the plan may have had it before.
]]

-- The ban ends at most `maxMs` from now, even if the clock of the process was wrong. A ban of an older generation is dropped, so a lifted
-- ban stays lifted.
local function addUnsentBan(side, unsent, stored)
  if unsent.liftedMs ~= numberIn(stored, 'liftedMs') or unsent.bannedUntilMs <= side.bannedUntilMs then return end
  side.bannedUntilMs = math.max(side.bannedUntilMs, math.min(unsent.bannedUntilMs, nowMs + side.bans.maxMs))
  side.banLevel = math.max(side.banLevel, unsent.banLevel)
end

-- Units of an ended window, and decisions of an older generation, are dropped. Refusals during a ban are not counted.
local function addUnsent(side, unsent, stored)
  side.prolongs = true
  if unsent.resetMs == numberIn(stored, 'resetMs') then
    for i = 1, #side.windows do
      local window = side.windows[i]
      local ofPlan = window.ofPlan or i
      if unsent.number[ofPlan] == window.number then window.used = window.used + unsent.used[ofPlan] end
    end
  end
  if unsent.liftedMs == numberIn(stored, 'liftedMs') and unsent.strikes > 0 and not isBanned(side) then
    addStrikes(side, unsent.strikes)
  end
end
