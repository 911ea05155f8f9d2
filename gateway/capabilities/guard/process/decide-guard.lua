#!lua flags=allow-oom
--[[
Adds the report of a process to the state of a guard, and decides whether the plan returns to its earlier limits.

A report without counts only reads the state. If Redis has lost its state, the report restores the state. Counts of an earlier generation are
ignored, because they belong to the time before a retry. A retry ends a revert. The watch then starts anew without counts.

KEYS[1] is a hash with the state of one guarded edit. The hash has these fields:

  `state`: the generation, the time of the revert (epoch ms; 0 without a revert), and the requests and refused requests at that time.

  `keys:<slot>`: the counts of a slot: a name, the requests and the refused requests of each key. The number of a slot is epoch ms divided by
  the length of a slot. The name is the hash of the key's id in 8 hex digits. If too many keys have requests, keys whose names begin with
  the same digit form a group.

  `sums`: the last slot, the argument 15 of the last decision, the requests and refused requests of all slots, and the counts of all slots
  together in the form of `keys`. The next slot begins with new sums.

  `process:<id>`: the number of the last report of a process, and the slot in which the report arrived. A report that is sent twice counts
  once.

An earlier version of the gateway has other fields for its counts, and removes outdated slots of both versions.

ARGV  1. `report` or `retry`. 2. The maximum share of refused requests. 3. The end of the guard, epoch ms. 4. The minimum of requests.
  5. The length of a slot in ms. 6. The number of slots. 7. The maximum number of keys in a slot. 8. The lifetime of the hash in ms.
  9. to 12. The four parts of the state that the process knows. 13. The id of the process. 14. The number of the report. 15. The number of
  keys that must have refusals for a revert. Then two arguments for each period with counts: the age of its beginning in ms, and the text for
  `keys`.

Reply: the four parts of the state, the requests and the refused requests of the last ten minutes, and 1 if this call has changed the state
and 0 otherwise.
]]
local op, share, untilMs, requestsMin, slotMs, slots, namesMax, keptMs, _, _, _, _, process, number, keysMin =
  unpack(ARGV, 1, 15)
local activeMax = 5
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
share, untilMs, slotMs, slots = tonumber(share), tonumber(untilMs), tonumber(slotMs), tonumber(slots)
namesMax, keysMin = tonumber(namesMax), tonumber(keysMin)
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
local storedSums
local function restart()
  redis.call('DEL', KEYS[1])
  writeState()
  storedSums = nil
end

local stored
stored, storedSums = unpack(redis.call('HMGET', KEYS[1], 'state', 'sums'))
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

-- Counts are a table of `{ requests, refused }` by name.
local function countsIn(text)
  local counts, size = {}, 0
  for name, requests, refused in string.gmatch(text, '(%x+) (%d+) (%d+)') do
    counts[name] = { tonumber(requests), tonumber(refused) }
    size = size + 1
  end
  return counts, size
end

local function textOf(counts)
  local parts = {}
  for name, count in pairs(counts) do
    parts[#parts + 1] = name .. ' ' .. whole(count[1]) .. ' ' .. whole(count[2])
  end
  return table.concat(parts, ' ')
end

local function byGroup(counts)
  local groups = {}
  for name, count in pairs(counts) do
    local group = string.sub(name, 1, 1)
    local sum = groups[group] or { 0, 0 }
    groups[group] = { sum[1] + count[1], sum[2] + count[2] }
  end
  return groups
end

-- If too many names have requests, groups replace all keys.
local function add(counts, size, more)
  for name, count in pairs(more) do
    local sum = counts[name]
    if not sum then size = size + 1 end
    sum = sum or { 0, 0 }
    counts[name] = { sum[1] + count[1], sum[2] + count[2] }
  end
  if size <= namesMax then return counts, size end
  counts, size = byGroup(counts), 0
  for _ in pairs(counts) do size = size + 1 end
  return counts, size
end

local sums, names = {}, 0
local requests, refused = 0, 0

-- Reads the sums of the present slot. Without new counts, only a smaller `keysMin` can change the decision of these sums.
local sumsSlot, sumsKeysMin, sumsRequests, sumsRefused, sumsText =
  string.match(storedSums or '', '^(%d+) (%d+) (%d+) (%d+) ?(.*)$')
local isCurrent = sumsSlot == whole(lastSlot)
local isDecided = isCurrent and #ARGV == 15 and tonumber(sumsKeysMin) <= keysMin
if isDecided then
  requests, refused = tonumber(sumsRequests), tonumber(sumsRefused)
elseif isCurrent then
  sums, names = countsIn(sumsText)
else
  -- Each new slot, and each step of the clock, removes the fields of outdated slots and of processes without reports.
  local fields = redis.call('HGETALL', KEYS[1])
  for i = 1, #fields, 2 do
    local kind, slot = string.match(fields[i], '^(%a+):(%d+)$')
    if string.match(fields[i], '^process:') then slot = string.match(fields[i + 1], ' (%d+)$') end
    if slot and not isKept(tonumber(slot)) then
      redis.call('HDEL', KEYS[1], fields[i])
    elseif kind == 'keys' then
      sums, names = add(sums, names, (countsIn(fields[i + 1])))
    end
  end
  redis.call('PEXPIRE', KEYS[1], keptMs)
end

local isWatching = sinceMs == 0 and nowMs < untilMs
if isWatching and #ARGV > 15 and knownGeneration == generation then
  local mark = 'process:' .. process
  local last = tonumber(string.match(redis.call('HGET', KEYS[1], mark) or '', '^%d+') or -1)
  if tonumber(number) > last then
    redis.call('HSET', KEYS[1], mark, number .. ' ' .. whole(lastSlot))
    for at = 16, #ARGV, 2 do
      local slot = math.floor((nowMs - ARGV[at]) / slotMs)
      if isKept(slot) then
        local field, more = 'keys:' .. whole(slot), countsIn(ARGV[at + 1])
        local counts, size = countsIn(redis.call('HGET', KEYS[1], field) or '')
        redis.call('HSET', KEYS[1], field, textOf((add(counts, size, more))))
        sums, names = add(sums, names, more)
      end
    end
  end
end

-- If a slot has groups, all keys are counted by group.
for name in pairs(sums) do
  if #name == 1 then
    sums = byGroup(sums)
    break
  end
end
local keys, refusing = {}, 0
for _, count in pairs(sums) do
  keys[#keys + 1] = count
  requests, refused = requests + count[1], refused + count[2]
  if count[2] > 0 then refusing = refusing + 1 end
end
if not isDecided then
  local heads = { whole(lastSlot), whole(keysMin), whole(requests), whole(refused), textOf(sums) }
  redis.call('HSET', KEYS[1], 'sums', table.concat(heads, ' '))
end

-- Returns the number of requests of one key that count at most. This number is the given part of all requests that count. If no key has more
-- requests, all requests count.
local function partOf(list, parts)
  local sum = 0
  for _, count in ipairs(list) do sum = sum + count[1] end
  local most, others = sum / parts, {}
  for _, count in ipairs(list) do
    if count[1] <= most then others[#others + 1] = count end
  end
  if #others == #list then return most end
  return partOf(others, parts - (#list - #others))
end

-- With n active keys, each key counts for at most 1/n of the requests, and for at most 1/n of the refusals that a revert needs. From five
-- active keys on, the part is a fifth. The requests of a key beyond its part do not count, and its refusals count in proportion. A revert
-- therefore needs n full parts.
if isWatching and not isDecided and requests >= tonumber(requestsMin) and refusing >= keysMin then
  local parts = math.min(#keys, activeMax)
  local requestsMax = partOf(keys, parts)
  local full, counted = 0, 0
  for _, count in ipairs(keys) do
    local ofKey = count[2] * math.min(1, requestsMax / count[1])
    full = full + math.min(1, ofKey / (share * requestsMax))
    counted = counted + ofKey
  end
  -- The sum may be slightly too small, because a share such as 0.07 has no exact binary form.
  if full >= parts * (1 - 1e-9) then
    take(generation, nowMs, math.floor(requestsMax * parts + 0.5), math.ceil(counted - 1e-9))
    writeState()
    hasChanged = 1
  end
end

return { generation, sinceMs, requestsThen, refusedThen, requests, refused, hasChanged }
