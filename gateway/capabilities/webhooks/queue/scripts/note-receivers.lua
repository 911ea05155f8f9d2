--[[
Notes the receivers of one process. Waiting deliveries fail if no process has noted their receiver for a while.

KEYS[5] is the hash of receivers (claim-due.lua).

ARGV:
  1, 2      the time after which a receiver is gone (ms), and the error of its deliveries
  3         the maximum number of deliveries that one call ends
  4         how long the queue is kept (ms)
  5 to n    for each receiver of the process its id and the origin of its URL

The reply is the number of deliveries that were ended.
]]
local goneMs, problem, most, keptMs = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
if redis.call('TYPE', KEYS[5]).ok ~= 'hash' then redis.call('DEL', KEYS[5]) end

local stored, receivers = redis.call('HGETALL', KEYS[5]), {}
for i = 1, #stored, 2 do
  local isJson, receiver = pcall(cjson.decode, stored[i + 1])
  receivers[stored[i]] = isJson and type(receiver) == 'table' and receiver or {}
end
for i = 5, #ARGV, 2 do
  local receiver = receivers[ARGV[i]] or {}
  receiver.notedMs, receiver.origin = nowMs, ARGV[i + 1]
  receivers[ARGV[i]] = receiver
  redis.call('HSET', KEYS[5], ARGV[i], cjson.encode(receiver))
end
redis.call('PEXPIRE', KEYS[5], keptMs)

local endedNow = 0
for id, receiver in pairs(receivers) do
  local goneForMs = nowMs - (receiver.notedMs or 0)
  if goneForMs > goneMs then
    local members = redis.call('ZRANGEBYLEX', dues, '[' .. id .. ':', '(' .. id .. ';', 'LIMIT', 0, most - endedNow)
    for _, member in ipairs(members) do
      local eventId = string.match(member, '^[^:]*:[^:]*:(.*)$')
      local event, delivery = load(eventId), load(eventId .. ':' .. id)
      endedNow = endedNow + 1
      redis.call('ZREM', dues, member)
      if event and delivery and delivery.state == 'waiting' then
        delivery.lastMs, delivery.status, delivery.error = nowMs, nil, problem
        endDelivery(eventId, event, id, delivery, 'failed')
      end
    end
    -- The origin is kept for the list of deliveries.
    if #members == 0 and goneForMs > keptMs then redis.call('HDEL', KEYS[5], id) end
  end
end
if endedNow > 0 then keepFor(keptMs) end
return endedNow
