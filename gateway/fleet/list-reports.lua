--[[
Who reported what of a list that all processes share. The entries themselves are in a stream, which this script does not
touch: it has one key, as compatible servers ask for. So an entry is added in three steps:

  claim     says whether the report is about an entry that exists. If not, it is a claim: the process is to add the
            entry. Other processes that report the same are counted in the claim.
  XADD      by the process, with the name of the claim in the field `report`
  confirm   the claim becomes the entry with the id that XADD gave

The hash keeps the text of a claim until it is confirmed. Where its process dies before, whoever calls next after
`overdueMs` is told to add the entry. Every step can be repeated: a report that has arrived before is not counted again.

KEYS[1]  the hash. `id:<id>` who reported an entry, `<process>:<number> …`, the one who claimed it first
         `what:<what>` the last entries of it, `<id> <when it happened, epoch ms> …`
         `claims` those that are not confirmed, `<name> <when a process took it last, epoch ms> …`
         `claim:<name>` one of them, as JSON
         A claim has the name of its report, `<process>:<number>`, which stands in place of the id until it is confirmed.
ARGV[1]  what to do, with these arguments behind it:
         claim    what is the same in every report of it; the entry, JSON; the process; the number of its report; how long
                  ago it happened, ms; how far apart reports of the same may be, ms; how many reports of an entry are
                  counted; overdueMs; how long the hash is kept, ms
         overdue  overdueMs
         confirm  the claim's name; its `what`; its instant; the entry's id; how long the hash is kept, ms
         forget   id and `what` of each entry that is to be removed from the stream

`claim` and `overdue` reply with the entries that the caller is to add: name, what, at, entry, and since when the stream may
have it already, epoch ms (empty: it cannot). `confirm` replies 0 if another entry of the stream is that of the claim.
]]
local entriesPerWhat, overdueAtOnce = 4, 10
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local now = string.format('%.0f', nowMs)

-- The claims that the caller is to add: its own, and overdue ones. They are not overdue for others from now on.
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
    -- Its first arrival may have waited, in the socket of a server that was stopped: the report knew nothing of that time.
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
      -- A second report of the same process is another entry.
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
