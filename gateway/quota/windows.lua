--[[
The windows of a side, and the units that requests are charged in them. Windows follow the UTC calendar.

A side is what one decision reads and changes. Every key has the side of its plan, which enforces. A key with a trial has a second side,
which only observes. Both go through the same functions. A side has these members. The terms stay the same from call to call. The counts
are set anew for each key:

  bans, banFields     terms: the ban policy, and the hash fields of the counts of bans.lua
  windows             terms: for each window its field and usedField (hash.lua), lengthMs (0 for a calendar month), limit, group
                      (absent if the limit counts all operations), grant (grants.lua), and isReported (thresholds.lua)
  window.number       count: the number of the window (epoch ms / its length). Month 0 is January 1970
  window.used         count: the units that were charged in this window
  window.inForce      the limit that applies now (grants.lua)
  strikes, strikesFromMs, bannedUntilMs, banLevel   counts (bans.lua)
  prolongs            whether the hash must live longer than before the call
]]
local dayMs = 86400000
local daysFromMarchOfYear0To1970 = 719468
local daysIn400Years = 146097

-- Lua in Redis has no date functions. The calculation uses years that begin in March, so 29 February is always the last day of a year.
-- Tests compare monthOf and monthStartMs with JavaScript's Date.
local function monthOf(ms)
  local day = math.floor(ms / dayMs) + daysFromMarchOfYear0To1970
  local era = math.floor(day / daysIn400Years)
  local dayOfEra = day - era * daysIn400Years
  local yearOfEra = math.floor((dayOfEra - math.floor(dayOfEra / 1460) + math.floor(dayOfEra / 36524)
    - math.floor(dayOfEra / 146096)) / 365)
  local dayOfYear = dayOfEra - (365 * yearOfEra + math.floor(yearOfEra / 4) - math.floor(yearOfEra / 100))
  -- From March, which is 0. January and February count as months of the previous year.
  local month = math.floor((5 * dayOfYear + 2) / 153)
  local year = era * 400 + yearOfEra + (month >= 10 and 1 or 0)
  return (year - 1970) * 12 + (month + 2) % 12
end

local function monthStartMs(index)
  local year, month = 1970 + math.floor(index / 12), (index % 12 + 10) % 12
  if month >= 10 then year = year - 1 end
  local era = math.floor(year / 400)
  local yearOfEra = year - era * 400
  local dayOfYear = math.floor((153 * month + 2) / 5)
  local dayOfEra = yearOfEra * 365 + math.floor(yearOfEra / 4) - math.floor(yearOfEra / 100) + dayOfYear
  return (era * daysIn400Years + dayOfEra - daysFromMarchOfYear0To1970) * dayMs
end

local function windowIndex(lengthMs, ms)
  return lengthMs == 0 and monthOf(ms) or math.floor(ms / lengthMs)
end

local function windowEndMs(lengthMs, number)
  return lengthMs == 0 and monthStartMs(number + 1) or (number + 1) * lengthMs
end

-- The numbers of the windows at `indexedMs`, by their length. The keys of a call share them.
local indexes, indexedMs = {}, 0

-- The number of a window never decreases, even if the clock of a new master is behind.
local function openWindows(side)
  if indexedMs ~= nowMs then indexes, indexedMs = {}, nowMs end
  local windows = side.windows
  for i = 1, #windows do
    local window = windows[i]
    local now = indexes[window.lengthMs]
    if not now then
      now = windowIndex(window.lengthMs, nowMs)
      indexes[window.lengthMs] = now
    end
    if now > window.number then window.number, window.used, side.prolongs = now, 0, true end
  end
end

-- The units for which every window has room; negative if a limit was lowered below the used units. `groups` have the operation of the
-- request.
local function roomIn(side, groups)
  local room = math.huge
  local windows = side.windows
  for i = 1, #windows do
    local window = windows[i]
    local left = window.inForce - window.used
    if left < room and (not window.group or groups[window.group]) then room = left end
  end
  return room
end

local function fitting(requests, units, room)
  if units == 0 or requests * units <= room then return requests end
  return math.max(0, math.floor(room / units))
end

local function charge(side, groups, units)
  local windows = side.windows
  for i = 1, #windows do
    local window = windows[i]
    if not window.group or groups[window.group] then window.used = window.used + units end
  end
end

-- When the last window of a side ends, epoch ms.
local function windowsEndMs(side)
  local atMs = 0
  for i = 1, #side.windows do
    atMs = math.max(atMs, windowEndMs(side.windows[i].lengthMs, side.windows[i].number))
  end
  return atMs
end
