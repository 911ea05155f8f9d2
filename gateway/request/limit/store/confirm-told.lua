--[[
Marks a threshold of a key as reported, after the queue of webhooks has stored the report. The mark is the field `told` of the hash
that decide-quota.lua describes. The script does the same as confirmTold in thresholds.ts. The mark never decreases, and the script
drops the marks of ended windows. The script writes nothing if the window has ended, or if the counts were reset meanwhile.

KEYS[1] is `<prefix>:{<key id>}`.
ARGV: the name of the window, the number of the window, the percentage, resetMs.
The reply is 1 if the mark is stored, and otherwise 0.
]]
local windows = { 'hour', 'day', 'month' }
local stored = redis.call('HMGET', KEYS[1], 'told', 'resetMs', unpack(windows))
local percent = tonumber(ARGV[3])
if (tonumber(stored[2]) or 0) ~= tonumber(ARGV[4]) then return 0 end

local marks = {}
for i, window in ipairs(windows) do
  local index = stored[2 + i]
  local told = index and tonumber(string.match(stored[1] or '', window .. ' ' .. index .. ' (%d+)'))
  if window == ARGV[1] then
    if index ~= ARGV[2] then return 0 end
    if told and told >= percent then return 1 end
    told = percent
  end
  if told then marks[#marks + 1] = window .. ' ' .. index .. ' ' .. told end
end
redis.call('HSET', KEYS[1], 'told', table.concat(marks, ' '))
return 1
