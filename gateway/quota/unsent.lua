--[[
The decisions that a process made without Redis, and sends now: strikes, bannedUntilMs, banLevel, and for each window its number and the
units that the process charged. liftedMs and resetMs are the generation in the last reply that the process received.
]]

-- Units of an ended window are dropped. Decisions of an older generation are dropped, so a lifted ban stays lifted. The added ban ends
-- at most `maxMs` from now, even if the clock of the process was wrong.
local function addUnsent(side, unsent, stored)
  side.prolongs = true
  if unsent.resetMs == numberIn(stored, 'resetMs') then
    for i = 1, #side.windows do
      local window = side.windows[i]
      if unsent.number[i] == window.number then window.used = window.used + unsent.used[i] end
    end
  end
  if unsent.liftedMs ~= numberIn(stored, 'liftedMs') then return end
  if unsent.bannedUntilMs > side.bannedUntilMs then
    side.bannedUntilMs = math.max(side.bannedUntilMs, math.min(unsent.bannedUntilMs, nowMs + side.bans.maxMs))
    side.banLevel = math.max(side.banLevel, unsent.banLevel)
  end
  -- Refusals during a ban are not counted.
  if unsent.strikes == 0 or isBanned(side) then return end
  addStrikes(side, unsent.strikes)
end
