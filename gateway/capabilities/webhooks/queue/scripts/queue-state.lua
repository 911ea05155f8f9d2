#!lua flags=allow-oom
--[[
The state of the queue, and the functions that all scripts of the queue share. Each script of this folder runs with this text before its own
text. The flag `allow-oom` lets deliveries continue when Redis is out of memory. Only add-event.lua runs without the flag.

KEYS[1] is a hash with these fields:
  <event id>                  JSON, an event: type, atMs, subject, receivers (their ids), open (the number of waiting deliveries), addedMs,
                              place
  <event id>:body             the body that receivers get
  <event id>:<receiver id>    JSON, a delivery: state, attempts, and if present due, isClaimed, next, firstMs and lastMs (the end of
                              the first and of the last attempt), status, error
  tail:<receiver id>:<subject>  the last event of a subject that must arrive after earlier events
  waiting, delivered, failed  the number of deliveries in this state
  dropped                     the number of events that were removed while a delivery waited
  place                       the place of the last event
KEYS[2] is a zset of all events by their place. KEYS[3] is the same for the events without a waiting delivery.
KEYS[4] is a zset of the due times of waiting deliveries. All scores are 0, so the members are sorted as texts: `<receiver id>:<due time,
epoch ms, 13 digits>:<event id>`.

A waiting delivery without `due` follows an earlier delivery of the same subject to the same receiver. The member `next` of the earlier
delivery names its event. All keys have the same hash tag. The scripts use Redis's clock.
]]
local hash, order, ended, dues = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)

-- Returns nil for a missing field, and for a value that another program has written.
local function load(field)
  local isJson, value = pcall(cjson.decode, redis.call('HGET', hash, field) or '')
  return isJson and type(value) == 'table' and value or nil
end

local function save(field, value)
  redis.call('HSET', hash, field, cjson.encode(value))
end

local function count(name, change)
  local before = tonumber(redis.call('HGET', hash, name) or '') or 0
  redis.call('HSET', hash, name, string.format('%.0f', math.max(0, before + change)))
end

-- Sets the due time of a delivery; nil: none. The caller saves the delivery.
local function setDue(id, receiver, delivery, dueMs)
  if delivery.due then redis.call('ZREM', dues, receiver .. ':' .. delivery.due .. ':' .. id) end
  delivery.due = dueMs and string.format('%013.0f', dueMs) or nil
  if delivery.due then redis.call('ZADD', dues, 0, receiver .. ':' .. delivery.due .. ':' .. id) end
end

-- Lets the next delivery of the subject start. The caller saves the given delivery.
local function releaseNext(id, receiver, delivery, subject)
  local tail = 'tail:' .. receiver .. ':' .. subject
  local nextId = delivery.next
  delivery.next = nil
  if redis.call('HGET', hash, tail) == id then redis.call('HDEL', hash, tail) end
  local following = nextId and load(nextId .. ':' .. receiver)
  if not following or following.state ~= 'waiting' or following.due then return end
  setDue(nextId, receiver, following, nowMs)
  save(nextId .. ':' .. receiver, following)
end

-- Ends a waiting delivery with the state `delivered` or `failed`, and saves it.
local function endDelivery(id, event, receiver, delivery, state)
  setDue(id, receiver, delivery, nil)
  releaseNext(id, receiver, delivery, event.subject)
  delivery.state, delivery.isClaimed = state, nil
  save(id .. ':' .. receiver, delivery)
  count('waiting', -1)
  count(state, 1)
  event.open = event.open - 1
  save(id, event)
  if event.open <= 0 then redis.call('ZADD', ended, event.place, id) end
end

-- Each change renews the expiry of the queue, so the queue expires only if no process uses it.
local function keepFor(keptMs)
  for i = 1, 4 do redis.call('PEXPIRE', KEYS[i], keptMs) end
end
