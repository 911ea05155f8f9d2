-- Adds counts to a record (counts.ts has their form), once: a batch that the same process has sent before is left out.
-- KEYS[1]: the record, a hash. ARGV: the process, the number of its batch (ascending), when the record expires (epoch,
-- seconds), then for each field its name and its counts, MessagePack.
-- Returns 1 if the counts were added, 0 if they had been before.

-- The batches that were added last: process, number, process, number, …; whoever wrote last is at the end.
local batchesField = 'batches'
local processesMax = 32

local function load(field)
  local packed = redis.call('HGET', KEYS[1], field)
  return packed and cmsgpack.unpack(packed) or {}
end

-- Both are in ascending order: for each number its distance from the one before, then its value.
local function sum(one, other)
  local merged = {}
  local i, j, before = 1, 1, 0
  local number, otherNumber = one[1], other[1]
  while number or otherNumber do
    local lowest = math.min(number or math.huge, otherNumber or math.huge)
    local value = 0
    if number == lowest then
      value = one[i + 1]
      i = i + 2
      number = one[i] and number + one[i]
    end
    if otherNumber == lowest then
      local added = other[j + 1]
      -- Under 0 stands the latest.
      value = lowest == 0 and math.max(value, added) or value + added
      j = j + 2
      otherNumber = other[j] and otherNumber + other[j]
    end
    merged[#merged + 1] = lowest - before
    merged[#merged + 1] = value
    before = lowest
  end
  return merged
end

local process, batch = ARGV[1], tonumber(ARGV[2])
local batches = load(batchesField)
for i = 1, #batches, 2 do
  if batches[i] == process then
    if batches[i + 1] >= batch then return 0 end
    table.remove(batches, i)
    table.remove(batches, i)
    break
  end
end
while #batches >= 2 * processesMax do
  table.remove(batches, 1)
  table.remove(batches, 1)
end
batches[#batches + 1] = process
batches[#batches + 1] = batch

local written = { batchesField, cmsgpack.pack(batches) }
for i = 4, #ARGV, 2 do
  local added = cmsgpack.unpack(ARGV[i + 1])
  written[#written + 1] = ARGV[i]
  written[#written + 1] = cmsgpack.pack(sum(load(ARGV[i]), added))
end
redis.call('HSET', KEYS[1], unpack(written))
redis.call('EXPIREAT', KEYS[1], ARGV[3])
return 1
