--[[
Merges the reports of several processes about one entry of a shared list. The entries are in a stream. This script uses one
key, the hash with the reports, because some compatible servers allow only one key. So a process adds an entry in three steps:

  claim     finds the entry that the report is about. Without such an entry, the report becomes a claim, and the process
            adds the entry. Reports of other processes about the same event are counted in the claim.
  XADD      the process adds the entry, with the name of the claim in the field `report`
  confirm   replaces the claim by the entry id that XADD returned

The hash keeps the text of a claim until the claim is confirmed. If the process dies before, the next caller after `overdueMs`
adds the entry. Every step is idempotent, because a repeated report is not counted again.

KEYS[1]  the hash, with these fields:
         `id:<id>`       the reports of an entry, `<process>:<number> …`, the claiming process first
         `what:<what>`   the last entries with this identity, `<id> <instant, epoch ms> …`
         `claims`        the claims that are not confirmed, `<name> <last attempt, epoch ms> …`
         `claim:<name>`  a claim as JSON
         The name of a claim is its report, `<process>:<number>`. The name stands in for the id until the claim is confirmed.
ARGV[1]  the command, followed by its arguments:
         claim    identity of the event; entry as JSON; process; number of the report; age of the event, ms; longest time
                  between reports of one event, ms; largest number of counted reports; overdueMs; lifetime of the hash, ms
         overdue  overdueMs
         confirm  name of the claim; its identity; its instant; id of the entry; lifetime of the hash, ms
         forget   id and identity of each entry that the caller will remove from the stream

`claim` and `overdue` reply with the entries that the caller must add: name, identity, instant, entry, and the instant since
which the stream may have the entry, epoch ms (empty: the stream cannot have it). `confirm` replies 0 if the claim was already
confirmed with another entry.
]]
local entriesPerWhat, overdueAtOnce = 4, 10
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local now = string.format('%.0f', nowMs)

-- The claims that the caller must add: its own claim and overdue claims. Taking a claim starts its `overdueMs` anew.
local function take(ownName, overdueMs)
  local claims, own, overdue = {}, {}, {}
  for name, since in string.gmatch(redis.call('HGET', KEYS[1], 'claims') or '', '(%S+) (%d+)') do
    local isOverdue = nowMs - since > tonumber(overdueMs) and #overdue < overdueAtOnce
    if name == ownName or isOverdue then
      since = now
      local known = cjson.decode(redis.call('HGET', KEYS[1], 'claim:' .. name))
      local into = name == ownName and own or overdue
      into[#into + 1] = { name, known.what, known.at, known.entry, known.since }
    end
    claims[#claims + 1] = name .. ' ' .. since
  end
  if #own + #overdue > 0 then redis.call('HSET', KEYS[1], 'claims', table.concat(claims, ' ')) end
  return own[1], overdue
end

local function noteLast(what, last)
  redis.call('HSET', KEYS[1], 'what:' .. what, table.concat(last, ' ', math.max(1, #last - entriesPerWhat + 1)))
end

local function claim(what, entry, process, number, agoMs, mergedWithinMs, reportsMax, overdueMs, keptMs)
  local report = process .. ':' .. number
  local own, toAdd = take(report, overdueMs)
  local atMs = nowMs - agoMs
  if own then
    -- The first attempt may have waited in the socket of a paused server, so its instant was too late.
    if atMs < tonumber(own[3]) then own[3] = string.format('%.0f', atMs) end
    table.insert(toAdd, 1, own)
    return toAdd
  end

  local last, same, nearestMs = {}, nil, tonumber(mergedWithinMs)
  for id, at in string.gmatch(redis.call('HGET', KEYS[1], 'what:' .. what) or '', '(%S+) (%d+)') do
    local reports = redis.call('HGET', KEYS[1], 'id:' .. id)
    if reports then
      if string.find(' ' .. reports .. ' ', ' ' .. report .. ' ', 1, true) then return toAdd end
      last[#last + 1] = id .. ' ' .. at
      -- A second report of the same process is about another event.
      local isOwn = string.find(' ' .. reports, ' ' .. process .. ':', 1, true)
      local apartMs = math.abs(atMs - at)
      if not isOwn and apartMs <= nearestMs then same, nearestMs = { id = id, reports = reports }, apartMs end
    end
  end

  if same then
    local _, others = string.gsub(same.reports, ' ', '')
    if others + 1 < tonumber(reportsMax) then
      redis.call('HSET', KEYS[1], 'id:' .. same.id, same.reports .. ' ' .. report)
    end
    return toAdd
  end

  local at = string.format('%.0f', atMs)
  last[#last + 1] = report .. ' ' .. at
  noteLast(what, last)
  local claims = redis.call('HGET', KEYS[1], 'claims')
  local text = cjson.encode({ what = what, at = at, entry = entry, since = now })
  redis.call('HSET', KEYS[1], 'id:' .. report, report, 'claim:' .. report, text)
  redis.call('HSET', KEYS[1], 'claims', (claims and claims .. ' ' or '') .. report .. ' ' .. now)
  redis.call('PEXPIRE', KEYS[1], keptMs)
  table.insert(toAdd, 1, { report, what, at, entry, '' })
  return toAdd
end

local function removeClaim(name)
  local others = {}
  for other, since in string.gmatch(redis.call('HGET', KEYS[1], 'claims') or '', '(%S+) (%d+)') do
    if other ~= name then others[#others + 1] = other .. ' ' .. since end
  end
  if #others > 0 then
    redis.call('HSET', KEYS[1], 'claims', table.concat(others, ' '))
  else
    redis.call('HDEL', KEYS[1], 'claims')
  end
  redis.call('HDEL', KEYS[1], 'claim:' .. name, 'id:' .. name)
end

local function confirm(name, what, at, id, keptMs)
  if redis.call('HGET', KEYS[1], 'id:' .. id) then return 1 end
  local reports = redis.call('HGET', KEYS[1], 'id:' .. name) or name
  local last, isNoted = {}, false
  for known, itsAt in string.gmatch(redis.call('HGET', KEYS[1], 'what:' .. what) or '', '(%S+) (%d+)') do
    local claimedBy = string.match(redis.call('HGET', KEYS[1], 'id:' .. known) or '', '^%S+')
    if known ~= name and claimedBy == name then return 0 end
    isNoted = isNoted or known == name
    last[#last + 1] = (known == name and id or known) .. ' ' .. itsAt
  end
  -- The server may have lost the claim, in a failover for example.
  if not isNoted then last[#last + 1] = id .. ' ' .. at end
  removeClaim(name)
  noteLast(what, last)
  redis.call('HSET', KEYS[1], 'id:' .. id, reports)
  redis.call('PEXPIRE', KEYS[1], keptMs)
  return 1
end

local function forget(...)
  local entries = { ... }
  for index = 1, #entries, 2 do
    local id, what = entries[index], 'what:' .. entries[index + 1]
    redis.call('HDEL', KEYS[1], 'id:' .. id)
    local newest = string.match(redis.call('HGET', KEYS[1], what) or '', '(%S+) %d+$')
    if newest == id then redis.call('HDEL', KEYS[1], what) end
  end
  return 1
end

local function overdue(overdueMs)
  local _, toAdd = take(nil, overdueMs)
  return toAdd
end

local verbs = { claim = claim, overdue = overdue, confirm = confirm, forget = forget }
return verbs[ARGV[1]](unpack(ARGV, 2))
