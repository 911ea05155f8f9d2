--[[
Strikes and bans. A strike is a refusal by a window. The key is banned when it has `bans.after` strikes within `bans.withinMs`. Each
ban in a row lasts twice as long as the ban before, at most `bans.maxMs`.

An operator can also ban a key (adjust.lua). The field `handBan` has the end of this ban in epoch ms, and then the reason, for example
`1795 asked by mail`. The present ban is by hand if it ends at the same time.
]]
local function isBanned(side)
  return side.bannedUntilMs > nowMs
end

local function ban(side)
  if nowMs >= side.bannedUntilMs + side.bans.maxMs then side.banLevel = 0 end
  side.bannedUntilMs = nowMs + math.min(side.bans.forMs * 2 ^ side.banLevel, side.bans.maxMs)
  side.banLevel = side.banLevel + 1
  side.strikes, side.strikesFromMs = 0, 0
  side.prolongs = true
end

-- Resets the strikes when `withinMs` has passed since the first strike.
local function endStrikes(side)
  if side.strikes > 0 and nowMs >= side.strikesFromMs + side.bans.withinMs then
    side.strikes, side.strikesFromMs = 0, 0
  end
end

local function addStrikes(side, strikes)
  if side.strikes == 0 then side.strikesFromMs, side.prolongs = nowMs, true end
  side.strikes = side.strikes + strikes
end

-- Returns the number of refusals before the ban.
local function strike(side, refusals)
  local before = math.min(refusals, math.max(0, side.bans.after - 1 - side.strikes))
  if refusals > before then
    ban(side)
  else
    addStrikes(side, before)
  end
  return before
end

-- The time from which the counts have no effect, epoch ms.
local function sideEndMs(side)
  return math.max(
    windowsEndMs(side),
    side.strikes > 0 and side.strikesFromMs + side.bans.withinMs or 0,
    side.bannedUntilMs > 0 and side.bannedUntilMs + side.bans.maxMs or 0)
end
