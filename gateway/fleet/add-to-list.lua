--[[
Adds an entry to a list that all processes share. Where another process has reported the same at about the same time,
that entry counts this process too, and stays as it is otherwise.

KEYS[1]  the stream. Fields of an entry: `what`, `at` (when it happened, epoch ms), `entry` (JSON)
KEYS[2]  a hash: under `id:<id>` who reported that entry, `<process>:<number> …`; under `what:<what>` its last entries,
         `<id> <at> …`
ARGV     1 what is the same in every report of it   2 the entry, JSON   3 the process's id   4 the number of its report
         5 how long ago it happened, ms   6 how far apart reports of the same may be, ms   7 how many entries are kept
         8 for how long, ms   9 how many reports of one entry are counted

A report that has arrived before is dropped. A second one of the same process is another entry.
]]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local atMs = nowMs - ARGV[5]
local what = 'what:' .. ARGV[1]
local report = ARGV[3] .. ':' .. ARGV[4]
local entriesPerWhat, removedAtOnce = 4, 100

local known, same, nearestMs = {}, nil, tonumber(ARGV[6])
for id, at in string.gmatch(redis.call('HGET', KEYS[2], what) or '', '(%S+) (%d+)') do
  local reports = redis.call('HGET', KEYS[2], 'id:' .. id)
  if reports then
    if string.find(' ' .. reports .. ' ', ' ' .. report .. ' ', 1, true) then return end
    known[#known + 1] = id .. ' ' .. at
    local isOwn = string.find(' ' .. reports, ' ' .. ARGV[3] .. ':', 1, true)
    local apartMs = math.abs(atMs - at)
    if not isOwn and apartMs <= nearestMs then same, nearestMs = { id = id, reports = reports }, apartMs end
  end
end

if same then
  local _, others = string.gsub(same.reports, ' ', '')
  if others + 1 < tonumber(ARGV[9]) then
    redis.call('HSET', KEYS[2], 'id:' .. same.id, same.reports .. ' ' .. report)
  end
  return
end

local at = string.format('%.0f', atMs)
local id = redis.call('XADD', KEYS[1], '*', 'what', ARGV[1], 'at', at, 'entry', ARGV[2])
known[#known + 1] = id .. ' ' .. at
local last = table.concat(known, ' ', math.max(1, #known - entriesPerWhat + 1))
redis.call('HSET', KEYS[2], 'id:' .. id, report, what, last)

-- The oldest, with what the hash has of them.
for _ = 1, removedAtOnce do
  local oldest = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
  local ageMs = oldest and nowMs - string.match(oldest[1], '^%d+')
  if not oldest or redis.call('XLEN', KEYS[1]) <= tonumber(ARGV[7]) and ageMs <= tonumber(ARGV[8]) then break end
  redis.call('XDEL', KEYS[1], oldest[1])
  redis.call('HDEL', KEYS[2], 'id:' .. oldest[1])
  local itsWhat = 'what:' .. oldest[2][2]
  local newest = string.match(redis.call('HGET', KEYS[2], itsWhat) or '', '(%S+) %d+$')
  if newest == oldest[1] then redis.call('HDEL', KEYS[2], itsWhat) end
end

redis.call('PEXPIRE', KEYS[1], ARGV[8])
redis.call('PEXPIRE', KEYS[2], ARGV[8])
