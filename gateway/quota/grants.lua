--[[
A grant: temporary limits that an operator has set. The hash field `grant` has the end of the grant in epoch ms, and then the name
and limit of each window, for example `1795 day 50 reports:day 20`. A grant that begins later also has its beginning, for example
`1795 day 50 from 1790`. Exemptions, such as
`name 0`, and the mark `leaked 1795` (marks.lua) may follow, which are no limits.

`window.grant` is the Lua pattern that finds the limit of a window.
]]

-- A running or future grant; nil for an ended grant.
local function unendedGrant(stored)
  local grant = stored.grant
  if grant and nowMs < (tonumber(string.match(grant, '^%d+')) or 0) then return grant end
end

local function isRunning(grant)
  return grant and nowMs >= (tonumber(string.match(grant, ' from (%d+)')) or 0)
end

-- A running grant replaces the limits of its windows. A window that the plan does not limit stays unlimited.
local function applyGrant(side, grant)
  if not isRunning(grant) then return end
  for i = 1, #side.windows do
    local window = side.windows[i]
    window.inForce = tonumber(string.match(grant, window.grant)) or window.limit
  end
end
