--[[
The hash of a key, with all its counts. Its fields:

  minute, minuteUsed         number and used units of the minute window; likewise second, hour, day and month
  reports:minute, …          the windows of a group of operations with the name `reports`
  strikes, strikesFromMs     the refusals that count towards the next ban, and the time of the first of them
  bannedUntilMs, banLevel    the end of the last ban, and the number of bans in a row
  handBan                    the last ban by an operator (bans.lua)
  trial:minute, trial:reports:minute, trial:strikes, …   all counts of the trial (trial.lua)
  liftedMs, resetMs          the times of the last lifted ban and of the last reset, which identify generations of bans and counts
  grant                      temporary limits (grants.lua), and the mark of a leaked secret (marks.lua)
  changedMs                  the generation of a key of the directory (marks.lua)
  leases                     requests in progress (leases.lua)
  told                       reported thresholds (thresholds.lua)

HSET is the first write of each function, and the only write that Redis refuses when it is out of memory or read-only. A call that
fails has therefore changed nothing. A new hash gets its expiry at once, so every hash has an expiry.
]]
-- The counts of bans.lua in a side. `side.banFields` has their hash fields, in the same order.
local banNames = { 'strikes', 'strikesFromMs', 'bannedUntilMs', 'banLevel' }
local nowMs

-- Redis's clock in ms, with microseconds.
local function exactNowMs()
  local time = redis.call('TIME')
  return time[1] * 1000 + time[2] / 1000
end

-- All functions use the time at which the call began.
local function readClock()
  nowMs = math.floor(exactNowMs())
end

-- The fields and their texts; a table with `err` if the Redis key is not a hash.
local function readHash(key)
  local flat = redis.pcall('HGETALL', key)
  if flat.err then return flat end
  local stored = {}
  for i = 1, #flat, 2 do stored[flat[i]] = flat[i + 1] end
  return stored
end

-- All other fields have numbers.
local textFields = { grant = true, handBan = true, leases = true, told = true }

-- Why a key was not decided: one of its fields is no number, or Redis refused a command.
local function failureOf(key, raised)
  for field, text in pairs(readHash(key)) do
    if not textFields[field] and not tonumber(text) then return { unusable = 'the field ' .. field .. ' is no number' } end
  end
  return { error = type(raised) == 'table' and raised.err or raised }
end

-- 0 for a missing field. An addition converts a text faster than `tonumber`. The loops below contain this expression, because a call of the
-- function costs as much.
local function numberIn(stored, field)
  return (stored[field] or 0) + 0
end

local function readSide(side, stored)
  for i = 1, #banNames do side[banNames[i]] = (stored[side.banFields[i]] or 0) + 0 end
  local windows = side.windows
  for i = 1, #windows do
    local window = windows[i]
    window.storedNumber, window.storedUsed = (stored[window.field] or 0) + 0, (stored[window.usedField] or 0) + 0
    window.number, window.used, window.inForce = window.storedNumber, window.storedUsed, window.limit
  end
  side.prolongs, side.begins = false, false
end

-- Adds the changed fields of a side to a list with `n` entries. A side that begins writes the fields of its ban, so that a later call finds
-- them. Returns the new number of entries.
local function addChanges(changes, n, side, stored)
  for i = 1, #banNames do
    local field, count = side.banFields[i], side[banNames[i]]
    if side.begins or count ~= (stored[field] or 0) + 0 then changes[n + 1], changes[n + 2], n = field, count, n + 2 end
  end
  local windows = side.windows
  for i = 1, #windows do
    local window = windows[i]
    if window.number ~= window.storedNumber then changes[n + 1], changes[n + 2], n = window.field, window.number, n + 2 end
    if window.used ~= window.storedUsed then changes[n + 1], changes[n + 2], n = window.usedField, window.used, n + 2 end
  end
  return n
end

local function remove(key, stored, field)
  if stored[field] then redis.call('HDEL', key, field) end
end

-- Never shortens the expiry. The hash lives one second longer than needed, so that it still exists if the same call decides the key again.
-- PEXPIREAT reads the clock later than this script, and would delete a hash whose expiry has just passed. PTTL returns -1 for a new hash.
local function prolong(key, atMs)
  if redis.call('PTTL', key) + nowMs < atMs + 1000 then redis.call('PEXPIREAT', key, string.format('%.0f', atMs + 1000)) end
end
