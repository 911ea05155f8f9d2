--[[
The decision on the requests of one key, in one round trip, on Redis's clock: the same function as decide-quota.ts.
calendar-month.lua stands before it.

Why not rate-limiter-flexible: its windows start at a key's first hit, where ours are those of the UTC calendar; it
charges one window per round trip, where ours are charged all or none; it charges refused requests, which here are
free; and it knows no ban ladder.

KEYS[1]  <prefix>:{<key id>}, one hash per key (HGETALL shows all there is):
  minute, minuteUsed           number of the minute window (epoch ms / its length), requests admitted in it; likewise
                               second, hour, day and month (months since January 1970), each once it is limited
  strikes, strikesFromMs       refusals counted towards the next ban, when the first of them was
  bannedUntilMs, banLevel      end of the last ban, and how many bans led to it
  liftedMs, resetMs            when a ban was lifted, when all counts were reset: the generations of decide-quota.ts
  grant                        until when other limits hold, epoch ms, then for each window its name and limit: `1 day 50`
  changedMs                    when the key itself was changed, of keys that may change without a reload

ARGV  1 requests to decide (0: only take over what a process decided on its own)
      2 changedMs of when the key was read, or nothing: of no interest
      3 bans: after   4 within ms   5 for ms   6 max ms
      7 how many windows are limited, then for each: its name, its length in ms (0: the calendar's month), its limit
      then, optionally, what a process decided on its own and never sent: strikes, bannedUntilMs, banLevel, liftedMs,
      resetMs, and for each window in the same order its number and use

Reply  nowMs, admitted, refused, banned, strikes, strikesFromMs, bannedUntilMs, banLevel, liftedMs, resetMs, and for
       each window its number and use, then the field `grant` if it holds; or nowMs alone: the key was changed since it
       was read, nothing was decided

The first write is HSET, the only one that Redis refuses when it is out of memory or read-only: then nothing was
written. A new hash gets its expiry in the same atomic script, so none without one can exist; later the expiry moves
on with what it depends on, and never back, since windows that are not limited now may be again after the next edit.
]]
local requests = tonumber(ARGV[1])
local readMs = ARGV[2]
local after, withinMs = tonumber(ARGV[3]), tonumber(ARGV[4])
local forMs, maxMs = tonumber(ARGV[5]), tonumber(ARGV[6])
local windows = tonumber(ARGV[7])
local unsentAt = 8 + 3 * windows
local numbers = 6 + 2 * windows

local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)

local names = { 'strikes', 'strikesFromMs', 'bannedUntilMs', 'banLevel', 'liftedMs', 'resetMs' }
for i = 0, windows - 1 do
  names[7 + 2 * i] = ARGV[8 + 3 * i]
  names[8 + 2 * i] = ARGV[8 + 3 * i] .. 'Used'
end
names[numbers + 1] = 'grant'
if readMs ~= '' then names[numbers + 2] = 'changedMs' end
local stored = redis.call('HMGET', KEYS[1], unpack(names))
-- Not only an older one: after a failover that lost the change, or once the field has expired, it is read again too.
if readMs ~= '' and tonumber(readMs) ~= (tonumber(stored[numbers + 2]) or 0) then return { nowMs } end
local grant = stored[numbers + 1]
local grantHasEnded = grant and nowMs >= tonumber(string.match(grant, '^%d+'))
if grantHasEnded then grant = false end
local strikes, strikesFromMs = tonumber(stored[1]) or 0, tonumber(stored[2]) or 0
local bannedUntilMs, banLevel = tonumber(stored[3]) or 0, tonumber(stored[4]) or 0
local liftedMs, resetMs = tonumber(stored[5]) or 0, tonumber(stored[6]) or 0
local bannedBefore = bannedUntilMs
-- Whether anything changes that the expiry depends on.
local moves = false

local function ban()
  if nowMs >= bannedUntilMs + maxMs then banLevel = 0 end
  bannedUntilMs = nowMs + math.min(forMs * 2 ^ banLevel, maxMs)
  banLevel = banLevel + 1
  strikes, strikesFromMs = 0, 0
  moves = true
end

-- Open the windows that now lies in; never a smaller number, a failover may bring an older clock. The reply has its first
-- ten numbers from the beginning: Lua would move a table that is filled from behind.
local reply = { nowMs, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
for i = 1, windows do
  local lengthMs = tonumber(ARGV[6 + 3 * i])
  local now = lengthMs == 0 and monthOf(nowMs) or math.floor(nowMs / lengthMs)
  local number = tonumber(stored[5 + 2 * i]) or 0
  if now > number then
    reply[9 + 2 * i], reply[10 + 2 * i] = now, 0
    moves = true
  else
    reply[9 + 2 * i], reply[10 + 2 * i] = number, tonumber(stored[6 + 2 * i]) or 0
  end
end
if strikes > 0 and nowMs >= strikesFromMs + withinMs then strikes, strikesFromMs = 0, 0 end

local unsent = #ARGV >= unsentAt
if unsent then
  moves = true
  local unsentStrikes, unsentBannedUntilMs = tonumber(ARGV[unsentAt]), tonumber(ARGV[unsentAt + 1])
  if tonumber(ARGV[unsentAt + 4]) == resetMs then
    for i = 1, windows do
      local at, used = unsentAt + 3 + 2 * i, 10 + 2 * i
      if tonumber(ARGV[at]) == reply[used - 1] then reply[used] = reply[used] + tonumber(ARGV[at + 1]) end
    end
  end
  if tonumber(ARGV[unsentAt + 3]) == liftedMs then
    if unsentBannedUntilMs > bannedUntilMs then
      bannedUntilMs = math.max(bannedUntilMs, math.min(unsentBannedUntilMs, nowMs + maxMs))
      banLevel = math.max(banLevel, tonumber(ARGV[unsentAt + 2]))
    end
    if unsentStrikes > 0 and bannedUntilMs <= nowMs then
      if strikes == 0 then strikesFromMs = nowMs end
      strikes = strikes + unsentStrikes
      if strikes >= after then ban() end
    end
  end
end

local admitted, refused, banned = 0, 0, 0
if bannedUntilMs > nowMs then
  banned = requests
else
  admitted = requests
  for i = 1, windows do
    local limit = grant and string.match(grant, ' ' .. ARGV[5 + 3 * i] .. ' (%d+)') or ARGV[7 + 3 * i]
    admitted = math.min(admitted, tonumber(limit) - reply[10 + 2 * i])
  end
  admitted = math.max(0, admitted)
  for i = 1, windows do reply[10 + 2 * i] = reply[10 + 2 * i] + admitted end
  local rest = requests - admitted
  if rest > 0 then
    refused = math.min(rest, math.max(0, after - 1 - strikes))
    banned = rest - refused
    if banned > 0 then
      ban()
    else
      if strikes == 0 then strikesFromMs = nowMs end
      strikes = strikes + refused
      moves = true
    end
  end
end

reply[2], reply[3], reply[4] = admitted, refused, banned
reply[5], reply[6], reply[7], reply[8] = strikes, strikesFromMs, bannedUntilMs, banLevel
reply[9], reply[10] = liftedMs, resetMs
if grant then reply[numbers + 5] = grant end

-- A flood on a banned key changes nothing, and writes nothing. Otherwise only what changed is written: mostly two counts.
if unsent or admitted + refused > 0 or bannedUntilMs ~= bannedBefore then
  local fields, count = {}, 0
  for i = 1, numbers do
    if reply[i + 4] ~= (tonumber(stored[i]) or 0) then
      fields[count + 1], fields[count + 2] = names[i], reply[i + 4]
      count = count + 2
    end
  end
  if count > 0 then redis.call('HSET', KEYS[1], unpack(fields)) end
  if grantHasEnded then redis.call('HDEL', KEYS[1], 'grant') end
  if moves then
    local expiresMs = math.max(
      strikes > 0 and strikesFromMs + withinMs or 0,
      bannedUntilMs > 0 and bannedUntilMs + maxMs or 0,
      liftedMs > 0 and liftedMs + maxMs or 0)
    for i = 1, windows do
      local lengthMs = tonumber(ARGV[6 + 3 * i])
      local ends = reply[9 + 2 * i] + 1
      expiresMs = math.max(expiresMs, lengthMs == 0 and monthStartMs(ends) or ends * lengthMs)
    end
    -- A hash that is new has no expiry: PTTL says -1.
    if redis.call('PTTL', KEYS[1]) + nowMs < expiresMs then redis.call('PEXPIREAT', KEYS[1], expiresMs) end
  end
end

return reply
