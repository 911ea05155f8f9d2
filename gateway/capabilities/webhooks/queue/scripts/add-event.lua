--[[
Adds the event of a report, or merges the report with the event of an earlier report with the same identity.

KEYS[5] has the reports with this identity. Each line is `<event id> <time of the first report, epoch ms> <process>:<number>,…`.

ARGV:
  1 to 5    the id of the event, its type, its time (epoch ms), its subject and its body
  6, 7, 8   the process, the number of its report, and the age of the report (ms)
  9         1 if a second report of the same process is merged too, otherwise 0
  10, 11    the maximum time between two merged reports, and how long the identity is kept (ms; 0: reports are not merged)
  12        the maximum number of merged reports
  13, 14    the maximum number of events, and how long an event is kept (ms)
  15        the number of failed attempts after which a delivery no longer delays later deliveries
  16        the number of events that the process has dropped
  17 to n   the ids of the receivers
The reply is `added` or `merged`, and the id of the event. A report that is sent twice has the effect of one report.
]]
local id, eventType, atMs, subject, body, process, number, agoMs, isOnce, withinMs, identityMs = unpack(ARGV)
local reportsMax, eventsMax, keptMs, orderedMax, lost = unpack(ARGV, 12, 16)
local linesMax, removedAtOnce = 4, 100
local reportedMs = nowMs - agoMs

-- Each call repairs keys that another program has overwritten. Without the repair no event could be added.
for index, kind in ipairs({ 'hash', 'zset', 'zset', 'zset', 'string' }) do
  local stored = redis.call('TYPE', KEYS[index]).ok
  if stored ~= kind and stored ~= 'none' then redis.call('DEL', KEYS[index]) end
end

local function addDelivery(event, toId, receiver)
  local delivery = { state = 'waiting', attempts = 0 }
  local tail = 'tail:' .. receiver .. ':' .. event.subject
  local beforeId = event.subject ~= '' and redis.call('HGET', hash, tail)
  local before = beforeId and load(beforeId .. ':' .. receiver)
  if before and before.state == 'waiting' and before.attempts < tonumber(orderedMax) then
    before.next = toId
    save(beforeId .. ':' .. receiver, before)
  else
    setDue(toId, receiver, delivery, nowMs)
  end
  if event.subject ~= '' then redis.call('HSET', hash, tail, toId) end
  save(toId .. ':' .. receiver, delivery)
  count('waiting', 1)
end

-- Processes may have different receivers while a new configuration is loaded.
local function addMissingReceivers(toId)
  local event = load(toId)
  if not event then return end
  local known = {}
  for _, receiver in ipairs(event.receivers) do known[receiver] = true end
  local isNew = false
  for i = 17, #ARGV do
    if not known[ARGV[i]] then
      isNew = true
      table.insert(event.receivers, ARGV[i])
      event.open = event.open + 1
      addDelivery(event, toId, ARGV[i])
    end
  end
  if not isNew then return end
  save(toId, event)
  redis.call('ZREM', ended, toId)
end

local function removeEvent(oldId)
  local event = load(oldId)
  local isDropped = false
  for _, receiver in ipairs(event and event.receivers or {}) do
    local delivery = load(oldId .. ':' .. receiver)
    if delivery then
      count(delivery.state, -1)
      if delivery.state == 'waiting' then
        isDropped = true
        setDue(oldId, receiver, delivery, nil)
        releaseNext(oldId, receiver, delivery, event.subject)
      end
      redis.call('HDEL', hash, oldId .. ':' .. receiver)
    end
  end
  if isDropped then count('dropped', 1) end
  redis.call('HDEL', hash, oldId, oldId .. ':body')
  redis.call('ZREM', order, oldId)
  redis.call('ZREM', ended, oldId)
end

local function isOutdated(oldId)
  local event = load(oldId)
  return not event or nowMs - event.addedMs > tonumber(keptMs)
end

local function makeRoom()
  for _ = 1, removedAtOnce do
    local oldest = redis.call('ZRANGE', order, 0, 0)[1]
    if not oldest then return end
    local isFull = redis.call('ZCARD', order) >= tonumber(eventsMax)
    if not isFull and not isOutdated(oldest) then return end
    removeEvent(isFull and redis.call('ZRANGE', ended, 0, 0)[1] or oldest)
  end
end

local report = process .. ':' .. number
local lines, same, nearestMs = {}, nil, tonumber(withinMs)
if tonumber(identityMs) > 0 then
  for line in string.gmatch(redis.call('GET', KEYS[5]) or '', '[^\n]+') do
    local lineId, lineMs, reports = string.match(line, '^(%S+) (%d+) (%S+)$')
    if lineId then
      local found = { id = lineId, atMs = lineMs, reports = reports }
      lines[#lines + 1] = found
      if string.find(',' .. reports .. ',', ',' .. report .. ',', 1, true) then
        return { lineId == id and 'added' or 'merged', lineId }
      end
      local isOwn = string.find(',' .. reports, ',' .. process .. ':', 1, true)
      local apartMs = isOnce == '1' and 0 or math.abs(reportedMs - lineMs)
      if (isOnce == '1' or not isOwn) and apartMs <= nearestMs then same, nearestMs = found, apartMs end
    end
  end
end
-- A process repeats a call whose reply was lost.
if redis.call('HGET', hash, id) then return { 'added', id } end

if same then
  local _, others = string.gsub(same.reports, ',', '')
  if others + 1 < tonumber(reportsMax) then same.reports = same.reports .. ',' .. report end
else
  lines[#lines + 1] = { id = id, atMs = string.format('%.0f', reportedMs), reports = report }
end
if tonumber(identityMs) > 0 then
  local texts = {}
  for i = math.max(1, #lines - linesMax + 1), #lines do
    texts[#texts + 1] = lines[i].id .. ' ' .. lines[i].atMs .. ' ' .. lines[i].reports
  end
  local text = table.concat(texts, '\n')
  if same then redis.call('SET', KEYS[5], text, 'KEEPTTL') else redis.call('SET', KEYS[5], text, 'PX', identityMs) end
end
if tonumber(lost) > 0 then count('dropped', tonumber(lost)) end

if same then
  addMissingReceivers(same.id)
else
  makeRoom()
  count('place', 1)
  local place = tonumber(redis.call('HGET', hash, 'place'))
  local receivers = { unpack(ARGV, 17) }
  local event = { type = eventType, atMs = tonumber(atMs), subject = subject, receivers = receivers, open = #receivers }
  event.addedMs, event.place = nowMs, place
  redis.call('HSET', hash, id .. ':body', body)
  save(id, event)
  redis.call('ZADD', order, place, id)
  for _, receiver in ipairs(receivers) do addDelivery(event, id, receiver) end
end
keepFor(keptMs)
return { same and 'merged' or 'added', same and same.id or id }
