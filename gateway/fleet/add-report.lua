--[[
Adds the report of one process to a shared list. Reports of several processes about one event are merged into one entry.

`KEYS[1]` is the stream of entries. An entry has the fields `what` (the identity of the event), `at` (the time of the event, epoch ms) and
`entry` (JSON).
`KEYS[2]` is a hash. The field `id:<id>` of the hash has the reports of an entry in their order, as `<process>:<number> …`. The field
`what:<what>` has the last entries with the identity `<what>`, as `<id> <time, epoch ms> …`. The stream and the hash have the same hash tag,
so a Cluster keeps them on one server.

The first five arguments are the identity of the event, the entry as JSON, the process, the number of the report, and the age of the event
in ms. The last four arguments are the maximum time between two reports of one event (ms), the maximum number of counted reports, the
maximum number of entries, and the lifetime of an entry (ms). If a report is sent twice, it is counted once.
]]
local what, entry, process, number, agoMs, mergedWithinMs, reportsMax, entriesMax, keptMs = unpack(ARGV)
local entriesPerWhat, removedAtOnce = 4, 100
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local atMs = nowMs - agoMs
local report = process .. ':' .. number

local last, reports, same, nearestMs = {}, nil, nil, tonumber(mergedWithinMs)
for id, at in string.gmatch(redis.call('HGET', KEYS[2], 'what:' .. what) or '', '(%S+) (%d+)') do
  local known = redis.call('HGET', KEYS[2], 'id:' .. id) or ''
  local place = string.find(' ' .. known .. ' ', ' ' .. report .. ' ', 1, true)
  if place then
    if place > 1 or atMs >= tonumber(at) then return end
    -- The process sent this report twice. The first copy waited in the socket of a paused server, so its entry has a later time than the
    -- event. The entry with the earlier time replaces it.
    redis.call('XDEL', KEYS[1], id)
    redis.call('HDEL', KEYS[2], 'id:' .. id)
    reports = known
  elseif known ~= '' then
    last[#last + 1] = id .. ' ' .. at
    -- A process reports each event once. A second report with the same identity therefore belongs to another event.
    local isOwn = string.find(' ' .. known, ' ' .. process .. ':', 1, true)
    local apartMs = math.abs(atMs - at)
    if not isOwn and apartMs <= nearestMs then same, nearestMs = { id = id, reports = known }, apartMs end
  end
end

if same and not reports then
  local _, others = string.gsub(same.reports, ' ', '')
  if others + 1 < tonumber(reportsMax) then
    redis.call('HSET', KEYS[2], 'id:' .. same.id, same.reports .. ' ' .. report)
  end
  return
end

local at = string.format('%.0f', atMs)
local id = redis.call('XADD', KEYS[1], '*', 'what', what, 'at', at, 'entry', entry)
last[#last + 1] = id .. ' ' .. at
local lastText = table.concat(last, ' ', math.max(1, #last - entriesPerWhat + 1))
redis.call('HSET', KEYS[2], 'id:' .. id, reports or report, 'what:' .. what, lastText)

for _ = 1, removedAtOnce do
  local oldest = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
  local ageMs = nowMs - string.match(oldest[1], '^%d+')
  if redis.call('XLEN', KEYS[1]) <= tonumber(entriesMax) and ageMs <= tonumber(keptMs) then break end
  redis.call('XDEL', KEYS[1], oldest[1])
  redis.call('HDEL', KEYS[2], 'id:' .. oldest[1])
  local itsWhat = 'what:' .. oldest[2][2]
  local newest = string.match(redis.call('HGET', KEYS[2], itsWhat) or '', '(%S+) %d+$')
  if newest == oldest[1] then redis.call('HDEL', KEYS[2], itsWhat) end
end

redis.call('PEXPIRE', KEYS[1], keptMs)
redis.call('PEXPIRE', KEYS[2], keptMs)
