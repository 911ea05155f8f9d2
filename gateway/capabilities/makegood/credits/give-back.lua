--[[
Gives a key back the units of its failed requests, once for each minute, bucket and upstream. Each bucket gets back only what it charged.
The script does the same as giveBack in give-back.ts. The script calls functions of the chapters in `quota/`, which the gateway puts before
this script.

KEYS[1]  `<prefix>:{<key id>}`: the counts of the key (`quota/hash.lua`).
KEYS[2]  `<prefix>:{<key id>}:credits`: the units for which the key has received a credit. The hash has these fields:

  `<hour>:<upstream>`: the failed units of each minute that earlier calls have handled, for example `0 12 1 7`. The first number of a
  pair is the minute of the hour. The second number is the units. The hour is the number of the hour since 1970.

  `<hour>:<bucket>/<upstream>`: likewise the units that another bucket than the plan has charged, such as `trial`. The counts of the bucket
  are the fields `<bucket>:day`, `<bucket>:dayUsed` and so on of KEYS[1].

  `last`: the last credits, the newest first. Each credit has eight parts. The first four parts are the name of the run, the time of the
  credit, and the beginning and the end of the period of the run. Then follow the failed units, the units that the day has received, and
  the units that the month has received. The last part is `;`.

ARGV  1. `1` to compute the result without any change, and otherwise `0`.
  2. to 4. The name of the run, and the beginning and the end of its period, epoch ms.
  5. The oldest hour whose failed units can still be read. Fields of earlier hours are removed, except fields of this call.
  6. The time at which the hash may expire, epoch ms. The time never becomes earlier.
  7. to 9. The lengths of a minute, a day and a month in ms; 0 for a calendar month.
  10. The maximum number of credits in `last`.
  Then follow, for each hour, bucket and upstream: the name of the field, and the failed units of each minute in the form of the field.

Reply  nowMs, the failed units of the plan that no earlier call has handled, and the units that the day and the month have received. These are
the units of the plan, or the sum of its groups if the plan has no open window of this length.

A minute adds to a window if the window is open and contains the minute, and if the counts were not reset after the minute. The used units
of a window never become negative. HSET on KEYS[2] is the first write, and the only write that Redis refuses when it is out of memory or
read-only.
]]
local isDryRun, run, fromMs, toMs = ARGV[1] == '1', ARGV[2], ARGV[3], ARGV[4]
local oldestHour, expiresMs, minuteMs = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])

local counts = readHash(KEYS[1])
if counts.err then return counts end
local stored = redis.pcall('HGETALL', KEYS[2])
if stored.err then return stored end
local credits = {}
for i = 1, #stored, 2 do credits[stored[i]] = stored[i + 1] end

local windows = { { name = 'day', lengthMs = tonumber(ARGV[8]) }, { name = 'month', lengthMs = tonumber(ARGV[9]) } }
for _, window in ipairs(windows) do window.present = windowIndex(window.lengthMs, nowMs) end

-- The units that are due in each window, by the field of the window.
local due = {}
local failed, written, isNew = 0, {}, {}
for i = 11, #ARGV, 2 do
  local field = ARGV[i]
  local hour, bucket = tonumber(string.match(field, '^%d+')), string.match(field, '^%d+:([^/]+)/')
  local prefix = bucket and string.gsub(bucket, '%.', ':') .. ':' or ''
  local handled, isChanged = {}, false
  for minute, units in string.gmatch(credits[field] or '', '(%d+) (%d+)') do handled[tonumber(minute)] = tonumber(units) end
  for minute, units in string.gmatch(ARGV[i + 1], '(%d+) (%d+)') do
    minute, units = tonumber(minute), tonumber(units)
    local more = units - (handled[minute] or 0)
    if more > 0 then
      handled[minute], isChanged = units, true
      if not bucket then failed = failed + more end
      local startMs = (hour * 60 + minute) * minuteMs
      for _, window in ipairs(windows) do
        local number = numberIn(counts, prefix .. window.name)
        local isDue = number >= window.present and number == windowIndex(window.lengthMs, startMs)
          and startMs + minuteMs > numberIn(counts, 'resetMs')
        if isDue then due[prefix .. window.name] = (due[prefix .. window.name] or 0) + more end
      end
    end
  end
  if isChanged then
    local parts = {}
    for minute = 0, 59 do
      if handled[minute] then parts[#parts + 1] = string.format('%d %.0f', minute, handled[minute]) end
    end
    credits[field], isNew[field] = table.concat(parts, ' '), true
    written[#written + 1], written[#written + 2] = field, credits[field]
  end
end

local units = {}
for field, unitsDue in pairs(due) do units[#units + 1] = { field, numberIn(counts, field), unitsDue } end
local given = {}
for _, window in ipairs(windows) do
  local isOfPlan, sum = numberIn(counts, window.name) >= window.present, 0
  for _, one in ipairs(units) do
    local group = string.match(one[1], '^([^:]+):' .. window.name .. '$')
    local isShown = one[1] == window.name or (not isOfPlan and group and group ~= 'trial')
    if isShown then sum = sum + chargedOf(counts, unpack(one)) end
  end
  given[window.name] = sum
end
local day, month = given.day, given.month
if isDryRun or #written == 0 then return { nowMs, failed, day, month } end

if day + month > 0 then
  local others, all = {}, failed
  local dayOfRun, monthOfRun = day, month
  for name, text in string.gmatch(credits.last or '', '(%S+) ([^;]*);') do
    local ofAll, ofDay, ofMonth = string.match(text, '^%d+ %d+ %d+ (%d+) (%d+) (%d+)')
    if name == run and ofMonth then
      -- An earlier call of the same run has given units back.
      all, dayOfRun, monthOfRun = all + ofAll, dayOfRun + ofDay, monthOfRun + ofMonth
    elseif #others < tonumber(ARGV[10]) - 1 then
      others[#others + 1] = name .. ' ' .. text .. ';'
    end
  end
  local newest = string.format('%s %.0f %s %s %.0f %.0f %.0f ;', run, nowMs, fromMs, toMs, all, dayOfRun, monthOfRun)
  written[#written + 1], written[#written + 2] = 'last', table.concat({ newest, unpack(others) }, ' ')
end
redis.call('HSET', KEYS[2], unpack(written))
for field in pairs(credits) do
  local hour = tonumber(string.match(field, '^(%d+):'))
  if hour and hour < oldestHour and not isNew[field] then redis.call('HDEL', KEYS[2], field) end
end
if redis.call('PTTL', KEYS[2]) + nowMs < expiresMs then redis.call('PEXPIREAT', KEYS[2], string.format('%.0f', expiresMs)) end
adjust(KEYS[1], { units = units })
return { nowMs, failed, day, month }
