--[[
Claims due deliveries for one process. The process becomes the sender of each receiver that has no sender.

KEYS[5] is a hash of receivers. A field is the id of a receiver. Its value is JSON: process and untilMs (the sender, and the end of its
time), notedMs and origin (note-receivers.lua).

ARGV:
  1, 2      the process, and how long it remains the sender (ms)
  3, 4      how long a claim lasts, and how long the queue is kept (ms)
  5         until when the process waits for the reply (epoch ms; 0: unknown)
  6 to n    for each receiver its id and the maximum number of deliveries

The reply is 1 if the process is the sender of a receiver, otherwise 0, and Redis's time (epoch ms). For each delivery, the receiver, the
event, the token of the claim, the number of ended attempts, the time since the first attempt in ms and the body follow.
]]
local process, senderMs, claimMs, keptMs = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local untilMs = tonumber(ARGV[5])
local reply = { 0, nowMs }
local hasChanged = false

local function isSender(id)
  local isJson, receiver = pcall(cjson.decode, redis.call('HGET', KEYS[5], id) or '')
  if not isJson or type(receiver) ~= 'table' then receiver = {} end
  local leftMs = (receiver.untilMs or 0) - nowMs
  -- The time that is left is too long only if Redis's clock was set back.
  local isTaken = receiver.process and leftMs > 0 and leftMs <= senderMs
  if isTaken and receiver.process ~= process then return false end
  if not isTaken or leftMs < senderMs / 2 then
    receiver.process, receiver.untilMs = process, nowMs + senderMs
    redis.call('HSET', KEYS[5], id, cjson.encode(receiver))
    redis.call('PEXPIRE', KEYS[5], keptMs)
  end
  return true
end

-- Redis runs old calls after it was frozen. Deliveries that no process attempts would wait until their claims end.
if untilMs > 0 and nowMs > untilMs then return { 1, nowMs } end

for i = 6, #ARGV, 2 do
  local receiver, most = ARGV[i], tonumber(ARGV[i + 1])
  if isSender(receiver) then
    reply[1] = 1
    local from, to = '[' .. receiver .. ':', '(' .. receiver .. ':' .. string.format('%013.0f', nowMs + 1)
    local members = most > 0 and redis.call('ZRANGEBYLEX', dues, from, to, 'LIMIT', 0, most) or {}
    for _, member in ipairs(members) do
      local id = string.match(member, '^[^:]*:[^:]*:(.*)$')
      local delivery, body = load(id .. ':' .. receiver), redis.call('HGET', hash, id .. ':body')
      redis.call('ZREM', dues, member)
      hasChanged = true
      if delivery and body and delivery.state == 'waiting' then
        setDue(id, receiver, delivery, nowMs + claimMs)
        delivery.isClaimed = true
        save(id .. ':' .. receiver, delivery)
        local sinceMs = string.format('%.0f', math.max(0, nowMs - (delivery.firstMs or nowMs)))
        for _, part in ipairs({ receiver, id, delivery.due, delivery.attempts, sinceMs, body }) do
          reply[#reply + 1] = part
        end
      end
    end
  end
end
if hasChanged then keepFor(keptMs) end
return reply
