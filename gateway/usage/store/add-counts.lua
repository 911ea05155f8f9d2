-- Adds a batch of counts to a record. `counts.ts` describes the form of the counts. A batch that the same process has
-- already sent is ignored.
-- KEYS[1]: the record, a hash. ARGV: the process, the number of its batch (ascending), the expiry of the record (epoch
-- seconds), and for each field its name and its counts as MessagePack.
-- Returns 1 if the counts were added, and 0 if the batch had already been added.
--
-- The script replaces unreadable data under the record's name. If the script kept this data, every batch for the record would fail, and
-- unsent counts would fill the memory of the gateway processes.

-- The field with the last batch number of each process: process, number, process, number, … The process that wrote last is at the end. A
-- process that is no longer in this list could add a batch twice, so the list has room for all processes of a fleet.
local batchesField = 'batches'
local processesMax = 128

local writtenMax = 1000

local function load(field)
  local packed = redis.call('HGET', KEYS[1], field)
  if not packed then return {} end
  local isPacked, values = pcall(cmsgpack.unpack, packed)
  return isPacked and type(values) == 'table' and values or {}
end

-- Adds two packed lists. A list stores each number as its distance from the previous number, followed by its value.
-- Numbers ascend. The function fails on a list in another form, because NaN would make the loop endless.
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
      -- Number 0 is the latest timestamp, not a sum.
      value = lowest == 0 and math.max(value, added) or value + added
      j = j + 2
      otherNumber = other[j] and otherNumber + other[j]
    end
    if not (lowest >= before and value >= 0) then error('no counts') end
    merged[#merged + 1] = lowest - before
    merged[#merged + 1] = value
    before = lowest
  end
  return merged
end

if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then redis.call('DEL', KEYS[1]) end

local process, batch = ARGV[1], tonumber(ARGV[2])
local batches = load(batchesField)
for i = 1, #batches, 2 do
  if type(batches[i]) ~= 'string' or type(batches[i + 1]) ~= 'number' then
    batches = {}
    break
  end
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

-- The fields are written in parts, because `unpack` accepts at most 8,000 values, and a day of all operations may have more.
local written = { batchesField, cmsgpack.pack(batches) }
for i = 4, #ARGV, 2 do
  local added = cmsgpack.unpack(ARGV[i + 1])
  local isSummed, counts = pcall(sum, load(ARGV[i]), added)
  written[#written + 1] = ARGV[i]
  written[#written + 1] = isSummed and cmsgpack.pack(counts) or ARGV[i + 1]
  if #written >= writtenMax then
    redis.call('HSET', KEYS[1], unpack(written))
    written = {}
  end
end
if #written > 0 then redis.call('HSET', KEYS[1], unpack(written)) end
redis.call('EXPIREAT', KEYS[1], ARGV[3])
return 1
