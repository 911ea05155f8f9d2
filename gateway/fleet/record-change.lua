--[[
Adds a change to the stream of changes. Where another process has reported the same change a moment ago, that entry is
replaced by one that counts this process too; it keeps the instant and all else of the first.

KEYS[1]  the stream. Fields of an entry: `what`, `change`, `reports`
ARGV     1 what is the same in every report of one change   2 the change, JSON   3 the process's id
         4 the number of the report, of this process   5 how long ago an entry may be to be the same change, ms
         6 how many entries are kept   7 for how long, ms

`reports` is `<process>:<number> …`. A report that has arrived before is dropped, and a second one of the same process is
another change.
]]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local change, reports = ARGV[2], ARGV[3] .. ':' .. ARGV[4]

for _, entry in ipairs(redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 20)) do
  local id, fields = entry[1], entry[2]
  if nowMs - tonumber(string.match(id, '^%d+')) > tonumber(ARGV[5]) then break end
  if fields[2] == ARGV[1] then
    local before = ' ' .. fields[6] .. ' '
    if string.find(before, ' ' .. reports .. ' ', 1, true) then return end
    if not string.find(before, ' ' .. ARGV[3] .. ':', 1, true) then
      redis.call('XDEL', KEYS[1], id)
      change, reports = fields[4], fields[6] .. ' ' .. reports
    end
    break
  end
end

redis.call('XADD', KEYS[1], 'MAXLEN', ARGV[6], '*', 'what', ARGV[1], 'change', change, 'reports', reports)
redis.call('PEXPIRE', KEYS[1], ARGV[7])
