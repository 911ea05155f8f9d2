--[[
Makes deliveries of an event due now. A delivery that has ended begins anew. A delivery with an attempt in progress stays as it is.

ARGV: the event, a receiver or an empty text for all receivers, and how long the queue is kept (ms).
The reply is the number of deliveries that are due, or -1 if the queue does not have the event.
]]
local id, only, keptMs = unpack(ARGV)
local event = load(id)
if not event then return -1 end

local due = 0
for _, receiver in ipairs(event.receivers) do
  local delivery = (only == '' or only == receiver) and load(id .. ':' .. receiver)
  if delivery then
    due = due + 1
    if delivery.state ~= 'waiting' then
      count(delivery.state, -1)
      count('waiting', 1)
      event.open = event.open + 1
      delivery.state, delivery.attempts, delivery.firstMs = 'waiting', 0, nil
    end
    if not delivery.isClaimed or not delivery.due or tonumber(delivery.due) <= nowMs then
      setDue(id, receiver, delivery, nowMs)
      delivery.isClaimed = nil
    end
    save(id .. ':' .. receiver, delivery)
  end
end
if due > 0 then
  save(id, event)
  redis.call('ZREM', ended, id)
  keepFor(keptMs)
end
return due
