--[[
Adds batches of counts to records. `counts.ts` describes the form of the counts. A batch that the same process has already sent is ignored.

The batches are independent of each other. If the script fails between two batches, the process sends all batches again, and the script adds
the missing batches.

`KEYS` has the names of the records. On a Cluster, `KEYS` has only the name of the first record, because all declared keys must be in one
slot, but one server stores records of many slots. Each batch has these arguments: the name of the record, the process, the number of the
batch (ascending), the expiry of the record (epoch seconds) and the number of fields. The fields follow, each with its name and its counts
as MessagePack.

The reply has a number for each batch: 1 if the counts were added, and 0 if the batch had already been added. The number is -1 if the script
may not use the record, because another server stores the record.

The script replaces unreadable data under the record's name. If the script kept this data, every batch for the record would fail, and unsent
counts would fill the memory of the gateway processes.
]]

-- The field with the last batch number of each process: process, number, process, number, … The process that wrote last is at the end. A
-- process that is no longer in this list could add a batch twice, so the list has room for all processes of a fleet.
local batchesField = 'batches'
local processesMax = 128

local writtenMax = 1000

-- Adds two packed lists. A list stores each number as its distance from the previous number, followed by its value.
-- Numbers ascend. The function fails on a list in another form, because NaN would make the loop endless.
local function sum(one, other)
  local merged = {}
  local i, j, size, before = 1, 1, 0, 0
  local number, otherNumber = one[1], other[1]
  while number or otherNumber do
    local lowest, value
    if not otherNumber or (number and number < otherNumber) then
      lowest, value = number, one[i + 1]
    elseif not number or otherNumber < number then
      lowest, value = otherNumber, other[j + 1]
    else
      lowest, value = number, one[i + 1]
      local added = other[j + 1]
      -- Number 0 is the latest timestamp, not a sum.
      value = lowest == 0 and math.max(value, added) or value + added
    end
    if not (lowest >= before and value >= 0) then error('no counts') end
    if number == lowest then
      i = i + 2
      number = one[i] and number + one[i]
    end
    if otherNumber == lowest then
      j = j + 2
      otherNumber = other[j] and otherNumber + other[j]
    end
    merged[size + 1] = lowest - before
    merged[size + 2] = value
    size = size + 2
    before = lowest
  end
  return merged
end

-- Adds a short list to a list like `sum`, but changes the list. This takes less time than to make a new list.
local function addTo(list, added)
  local size = #list
  if size % 2 == 1 then error('no counts') end
  local i, number, before, target = 1, list[1], 0, 0
  for j = 1, #added, 2 do
    target = target + added[j]
    while number and number < target do
      if not (list[i] >= 0 and list[i + 1] >= 0) then error('no counts') end
      before = number
      i = i + 2
      number = list[i] and number + list[i]
    end
    local value = added[j + 1]
    if number == target then
      list[i + 1] = target == 0 and math.max(list[i + 1], value) or list[i + 1] + value
    else
      if number then list[i] = number - target end
      table.insert(list, i, target - before)
      table.insert(list, i + 1, value)
      number = target
      size = size + 2
    end
  end
  for rest = i, size do if not (list[rest] >= 0) then error('no counts') end end
  return list
end

-- Each insertion moves the later items of a list, so many insertions would take longer than a new list.
local shortSize = 16

local function packedSum(stored, packed)
  local values, added = cmsgpack.unpack(stored), cmsgpack.unpack(packed)
  if type(values) ~= 'table' then error('no counts') end
  return cmsgpack.pack(#added <= shortSize and addTo(values, added) or sum(values, added))
end

-- The list of batch numbers is edited as MessagePack. To unpack and pack the numbers of 128 processes would take longer than to add the
-- counts of a batch. The following functions fail on a list in another form.

-- Returns the whole number that begins at an octet of the list, and its last octet.
local function wholeNumberAt(list, first)
  local tag = list:byte(first)
  if tag < 0x80 then return tag, first end
  local octets = ({ [0xcc] = 1, [0xcd] = 2, [0xce] = 4, [0xcf] = 8 })[tag]
  local number = 0
  for i = first + 1, first + octets do number = number * 256 + list:byte(i) end
  return number, first + octets
end

-- Returns the last octet of the process and its number, which begin at the first octet of the list.
local function firstPairEnd(list)
  local tag = list:byte(1)
  if tag >= 0xa0 and tag < 0xc0 then return select(2, wholeNumberAt(list, tag - 0xa0 + 2)) end
  if tag == 0xd9 then return select(2, wholeNumberAt(list, list:byte(2) + 3)) end
  error('no process')
end

-- Returns the list without its header, and the number of its items.
local function itemsOf(packed)
  local tag = packed:byte(1)
  if tag >= 0x90 and tag < 0xa0 then return packed:sub(2), tag - 0x90 end
  if tag == 0xdc then return packed:sub(4), packed:byte(2) * 256 + packed:byte(3) end
  error('no list')
end

-- Returns the list with the batch at its end. Returns nil if the list already has this batch or a later batch of the process.
local function withBatch(packed, process, batch)
  local list, count = '', 0
  if packed then list, count = itemsOf(packed) end
  local packedProcess = cmsgpack.pack(process)
  local first = list:find(packedProcess, 1, true)
  if first then
    local number, last = wholeNumberAt(list, first + #packedProcess)
    if number >= batch then return nil end
    list = list:sub(1, first - 1) .. list:sub(last + 1)
    count = count - 2
  end
  while count >= 2 * processesMax do
    list = list:sub(firstPairEnd(list) + 1)
    count = count - 2
  end
  count = count + 2
  local header = count < 16 and string.char(0x90 + count) or string.char(0xdc, math.floor(count / 256), count % 256)
  return header .. list .. packedProcess .. cmsgpack.pack(batch)
end

-- Returns the values of the fields, false for a missing field; nil if another server stores the record.
local function read(name, fields)
  local values = {}
  for first = 1, #fields, writtenMax do
    local part = redis.pcall('HMGET', name, unpack(fields, first, math.min(first + writtenMax - 1, #fields)))
    if part.err then
      if not part.err:find('WRONGTYPE', 1, true) then return nil end
      redis.call('DEL', name)
      return {}
    end
    for _, value in ipairs(part) do values[#values + 1] = value end
  end
  return values
end

-- The fields are read and written in parts, because `unpack` accepts at most 8,000 values, and a day of all operations may have more.
local function write(name, values)
  for first = 1, #values, writtenMax do
    redis.call('HSET', name, unpack(values, first, math.min(first + writtenMax - 1, #values)))
  end
end

-- @param firstField the index of the first field in ARGV
local function add(name, process, batch, expiresSeconds, firstField, fieldsCount)
  local fields = { batchesField }
  for i = 1, fieldsCount do fields[i + 1] = ARGV[firstField + 2 * i - 2] end
  local stored = read(name, fields)
  if not stored then return -1 end

  local isList, batches = pcall(withBatch, stored[1], process, batch)
  if isList and not batches then return 0 end
  if not isList then batches = withBatch(nil, process, batch) end

  local written = { batchesField, batches }
  for i = 1, fieldsCount do
    local counts = ARGV[firstField + 2 * i - 1]
    if stored[i + 1] then
      local isSummed, summed = pcall(packedSum, stored[i + 1], counts)
      if isSummed then counts = summed end
    end
    written[2 * i + 1] = fields[i + 1]
    written[2 * i + 2] = counts
  end
  write(name, written)
  redis.call('EXPIREAT', name, expiresSeconds)
  return 1
end

local results = {}
local first = 1
while ARGV[first] do
  local fieldsCount = tonumber(ARGV[first + 4])
  results[#results + 1] =
    add(ARGV[first], ARGV[first + 1], tonumber(ARGV[first + 2]), ARGV[first + 3], first + 5, fieldsCount)
  first = first + 5 + 2 * fieldsCount
end
return results
