#!lua flags=allow-oom
--[[
Adds the report of a process to the state of a guard, and decides whether the plan returns to its earlier limits. The script does the same
as decide-guard.ts, on Redis's clock.

KEYS[1] is a hash with the state of one guarded edit. The hash has these fields:

  `state`: the generation, the time of the revert (epoch ms; 0 without a revert), and the requests and refused requests at that time.

  `counts:<slot>`: the requests and the refused requests of a slot. The number of a slot is epoch ms divided by the length of a slot.

  `total`: the requests and the refused requests of all slots.

  `refused:<slot>`: the refused requests of each key with refusals: a name and a number for each key. The name is the hash of the key's id
  in 8 hex digits. If too many keys have refusals, keys whose names begin with the same two digits form a group.

  `active:<slot>`: the names of up to five keys with requests.

  `process:<id>`: the number of the last report of a process, and the slot in which the report arrived. A report that is sent twice counts
  once.

  `tidied`: the slot in which the script last removed outdated fields.

  `scanned`: the time of the last decision that added up the refusals of each key.

ARGV  1. `report` or `retry`. 2. The maximum share of refused requests. 3. The end of the guard, epoch ms. 4. The minimum of requests.
  5. The length of a slot in ms. 6. The number of slots. 7. The maximum number of keys in a slot. 8. The lifetime of the hash in ms.
  9. to 12. The four parts of the state that the process knows. 13. The id of the process. 14. The number of the report. Then five arguments
  for each period with counts: the age of its beginning in ms, its requests, its refused requests, and the texts for `refused` and `active`.

Reply: the four parts of the state, the requests and the refused requests of the last ten minutes, and 1 if this call has changed the state
and 0 otherwise.
]]
local op, share, untilMs, requestsMin, slotMs, slots, namesMax, keptMs, _, _, _, _, process, number = unpack(ARGV, 1, 14)
local activeMax, scanPauseMs = 5, 500
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
share, untilMs, slotMs, slots = tonumber(share), tonumber(untilMs), tonumber(slotMs), tonumber(slots)
local lastSlot = math.floor(nowMs / slotMs)
local hasChanged = 0

local function whole(value)
  return string.format('%.0f', value)
end

-- The state in the hash, and the state that the process knows.
local generation, sinceMs, requestsThen, refusedThen = 0, 0, 0, 0
local function take(first, second, third, fourth)
  generation, sinceMs, requestsThen, refusedThen =
    tonumber(first), tonumber(second), tonumber(third), tonumber(fourth)
end
local function writeState()
  redis.call('HSET', KEYS[1], 'state',
    table.concat({ whole(generation), whole(sinceMs), whole(requestsThen), whole(refusedThen) }, ' '))
end
local tidied
local function restart()
  redis.call('DEL', KEYS[1])
  writeState()
  tidied = nil
end

local stored, total
stored, tidied, total = unpack(redis.call('HMGET', KEYS[1], 'state', 'tidied', 'total'))
if stored then take(string.match(stored, '^(%d+) (%d+) (%d+) (%d+)$')) end
local knownGeneration, knownSinceMs = tonumber(ARGV[9]), tonumber(ARGV[10])
if knownGeneration > generation then
  take(unpack(ARGV, 9, 12))
  restart()
elseif knownGeneration == generation and knownSinceMs > 0 and sinceMs == 0 then
  take(unpack(ARGV, 9, 12))
  writeState()
elseif not stored then
  writeState()
end

if op == 'retry' and sinceMs > 0 then
  take(generation + 1, 0, 0, 0)
  restart()
  hasChanged = 1
end

local function isKept(slot)
  return slot <= lastSlot and slot > lastSlot - slots
end

-- Each new slot, and each step of the clock, removes the fields of outdated slots and of processes without reports.
local requests, refused = 0, 0
if tidied ~= whole(lastSlot) or not total then
  local fields = redis.call('HGETALL', KEYS[1])
  for i = 1, #fields, 2 do
    local kind, slot = string.match(fields[i], '^(%a+):(%d+)$')
    if string.match(fields[i], '^process:') then slot = string.match(fields[i + 1], ' (%d+)$') end
    if slot and not isKept(tonumber(slot)) then
      redis.call('HDEL', KEYS[1], fields[i])
    elseif kind == 'counts' then
      local one, other = string.match(fields[i + 1], '^(%d+) (%d+)$')
      requests, refused = requests + one, refused + other
    end
  end
  redis.call('HSET', KEYS[1], 'tidied', whole(lastSlot), 'total', whole(requests) .. ' ' .. whole(refused))
  redis.call('PEXPIRE', KEYS[1], keptMs)
else
  requests, refused = string.match(total, '^(%d+) (%d+)$')
  requests, refused = tonumber(requests), tonumber(refused)
end

-- A table of `<name> <number> …`.
local function numbersIn(text)
  local numbers, size = {}, 0
  for name, count in string.gmatch(text, '(%x+) (%d+)') do
    numbers[name] = tonumber(count)
    size = size + 1
  end
  return numbers, size
end

local function byGroup(numbers)
  local groups = {}
  for name, count in pairs(numbers) do
    local group = string.sub(name, 1, 2)
    groups[group] = (groups[group] or 0) + count
  end
  return groups
end

local function addRefusals(field, text)
  local numbers, size = numbersIn(redis.call('HGET', KEYS[1], field) or '')
  for name, count in string.gmatch(text, '(%x+) (%d+)') do
    if not numbers[name] then size = size + 1 end
    numbers[name] = (numbers[name] or 0) + count
  end
  if size > tonumber(namesMax) then numbers = byGroup(numbers) end
  local parts = {}
  for name, count in pairs(numbers) do parts[#parts + 1] = name .. ' ' .. whole(count) end
  redis.call('HSET', KEYS[1], field, table.concat(parts, ' '))
end

local function addActive(field, text)
  local before = redis.call('HGET', KEYS[1], field) or ''
  local names, known = {}, {}
  for name in string.gmatch(before .. ' ' .. text, '%x+') do
    if not known[name] and #names < activeMax then names[#names + 1] = name end
    known[name] = true
  end
  local after = table.concat(names, ' ')
  if after ~= before then redis.call('HSET', KEYS[1], field, after) end
end

local isWatching = sinceMs == 0 and nowMs < untilMs
if isWatching and #ARGV > 14 and knownGeneration == generation then
  local mark = 'process:' .. process
  local last = tonumber(string.match(redis.call('HGET', KEYS[1], mark) or '', '^%d+') or -1)
  if tonumber(number) > last then
    redis.call('HSET', KEYS[1], mark, number .. ' ' .. whole(lastSlot))
    for at = 15, #ARGV, 5 do
      local slot = math.floor((nowMs - ARGV[at]) / slotMs)
      if isKept(slot) then
        local name = whole(slot)
        local one, other = string.match(redis.call('HGET', KEYS[1], 'counts:' .. name) or '0 0', '^(%d+) (%d+)$')
        redis.call('HSET', KEYS[1], 'counts:' .. name, whole(one + ARGV[at + 1]) .. ' ' .. whole(other + ARGV[at + 2]))
        requests, refused = requests + ARGV[at + 1], refused + ARGV[at + 2]
        if ARGV[at + 3] ~= '' then addRefusals('refused:' .. name, ARGV[at + 3]) end
        if ARGV[at + 4] ~= '' then addActive('active:' .. name, ARGV[at + 4]) end
      end
    end
    redis.call('HSET', KEYS[1], 'total', whole(requests) .. ' ' .. whole(refused))
  end
end

-- The values of all slots for one kind of fields.
local function ofSlots(kind)
  local names = {}
  for slot = lastSlot - slots + 1, lastSlot do names[#names + 1] = kind .. ':' .. whole(slot) end
  return redis.call('HMGET', KEYS[1], unpack(names))
end

-- The refusals of one key count up to a limit. The script adds up the refusals of each key only if all refusals together reach the share,
-- and at most twice a second.
local function isReached()
  local wanted = share * requests * (1 - 1e-9)
  if requests < tonumber(requestsMin) or refused < wanted then return false end
  local agoMs = nowMs - (tonumber(redis.call('HGET', KEYS[1], 'scanned') or 0) or 0)
  if agoMs >= 0 and agoMs < scanPauseMs then return false end
  redis.call('HSET', KEYS[1], 'scanned', whole(nowMs))
  local sums, hasGroup = {}, false
  for _, text in ipairs(ofSlots('refused')) do
    for name, count in string.gmatch(text or '', '(%x+) (%d+)') do
      sums[name] = (sums[name] or 0) + count
      hasGroup = hasGroup or #name == 2
    end
  end
  if hasGroup then sums = byGroup(sums) end
  local active, known = 0, {}
  for _, text in ipairs(ofSlots('active')) do
    for name in string.gmatch(text or '', '%x+') do
      if not known[name] then active = active + 1 end
      known[name] = true
    end
  end
  local ofOneKeyMax = share * requests / math.max(1, math.min(active, activeMax))
  local counted = 0
  for _, count in pairs(sums) do counted = counted + math.min(count, ofOneKeyMax) end
  return counted >= wanted
end

if isWatching and isReached() then
  take(generation, nowMs, requests, refused)
  writeState()
  hasChanged = 1
end

return { generation, sinceMs, requestsThen, refusedThen, requests, refused, hasChanged }
