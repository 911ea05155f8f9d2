--[[
Stores the result of an attempt. A result other than `delivered` has no effect after the end of its claim, because another attempt has begun.

ARGV:
  1, 2, 3   the receiver, the event, and the token of the claim
  4         `delivered`, `retry`, `failed` or `returned`
  5         the pause before the next attempt (ms)
  6, 7      the status of the response, and the error; an empty text if there is none
  8         the number of failed attempts after which a delivery no longer delays later deliveries
  9         how long the queue is kept (ms)
]]
local receiver, id, token, result, pauseMs, status, problem, orderedMax, keptMs = unpack(ARGV)
local event, delivery = load(id), load(id .. ':' .. receiver)
if not event or not delivery or delivery.state ~= 'waiting' then return end
if result ~= 'delivered' and (delivery.due ~= token or not delivery.isClaimed) then return end

delivery.isClaimed = nil
if result ~= 'returned' then
  delivery.attempts, delivery.lastMs = delivery.attempts + 1, nowMs
  delivery.firstMs = delivery.firstMs or nowMs
  delivery.status, delivery.error = tonumber(status), problem ~= '' and problem or nil
end
if result == 'retry' or result == 'returned' then
  setDue(id, receiver, delivery, nowMs + pauseMs)
  if delivery.attempts >= tonumber(orderedMax) then releaseNext(id, receiver, delivery, event.subject) end
  save(id .. ':' .. receiver, delivery)
else
  endDelivery(id, event, receiver, delivery, result)
end
keepFor(keptMs)
