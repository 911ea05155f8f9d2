--[[
The months of the UTC calendar, counted from January 1970 as 0, since Lua inside Redis has no dates. The arithmetic is
that of the proleptic Gregorian calendar with years that begin in March, so that 29 February is the last day of one.
The tests hold both functions against JavaScript's Date.
]]
local dayMs = 86400000
local daysFromMarchOfYear0To1970 = 719468
local daysIn400Years = 146097

local function monthOf(ms)
  local day = math.floor(ms / dayMs) + daysFromMarchOfYear0To1970
  local era = math.floor(day / daysIn400Years)
  local dayOfEra = day - era * daysIn400Years
  local yearOfEra = math.floor((dayOfEra - math.floor(dayOfEra / 1460) + math.floor(dayOfEra / 36524)
    - math.floor(dayOfEra / 146096)) / 365)
  local dayOfYear = dayOfEra - (365 * yearOfEra + math.floor(yearOfEra / 4) - math.floor(yearOfEra / 100))
  -- March is 0; January and February belong to the year before.
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
