--[[
Converts between epoch ms and months of the UTC calendar, because Lua in Redis has no date functions. Month 0 is January
1970. The calculation uses years that begin in March, so 29 February is always the last day of a year. Tests compare both
functions with JavaScript's Date.
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
  -- `month` counts from March, so March is 0. January and February belong to the previous year.
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
