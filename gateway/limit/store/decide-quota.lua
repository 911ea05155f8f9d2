--[[
The decision on the requests of one key, in one round trip, on Redis's clock: the same function as decide-quota.ts.

Why not rate-limiter-flexible: its windows start at a key's first hit, where ours are aligned to the UTC minute and day;
it charges one window per round trip, where ours are charged both or none; it charges refused requests, which here are
free; and it knows no ban ladder.

KEYS[1]  <prefix>:{<key id>}, one hash per key (HGETALL shows all there is):
  minute, minuteUsed           index of the minute window (epoch ms / its length), requests admitted in it
  day, dayUsed                 likewise for the day
  strikes, strikesFromMs       refusals counted towards the next ban, when the first of them was
  bannedUntilMs, banLevel      end of the last ban, and how many bans led to it

ARGV  1 minute length ms   2 day length ms   3 limit per minute   4 limit per day
      5 bans: after        6 within ms       7 for ms             8 max ms
      9 requests to decide (0: only take over what follows)
     10.. optional, what a process decided on its own and never sent:
          strikes, minute, minuteUsed, day, dayUsed, bannedUntilMs, banLevel

Reply  nowMs, admitted, refused, banned, then the eight fields in the order above.

The first write is HSET, the only one that Redis refuses when it is out of memory or read-only: then nothing was
written. PEXPIREAT, in the same atomic script, covers every field, so no hash without expiry can exist.
]]
local minuteMs, dayMs = tonumber(ARGV[1]), tonumber(ARGV[2])
local perMinute, perDay = tonumber(ARGV[3]), tonumber(ARGV[4])
local after, withinMs = tonumber(ARGV[5]), tonumber(ARGV[6])
local forMs, maxMs = tonumber(ARGV[7]), tonumber(ARGV[8])
local requests = tonumber(ARGV[9])

local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)

local stored = redis.call('HMGET', KEYS[1], 'minute', 'minuteUsed', 'day', 'dayUsed',
  'strikes', 'strikesFromMs', 'bannedUntilMs', 'banLevel')
local minute, minuteUsed = tonumber(stored[1]) or 0, tonumber(stored[2]) or 0
local day, dayUsed = tonumber(stored[3]) or 0, tonumber(stored[4]) or 0
local strikes, strikesFromMs = tonumber(stored[5]) or 0, tonumber(stored[6]) or 0
local bannedUntilMs, banLevel = tonumber(stored[7]) or 0, tonumber(stored[8]) or 0

local function ban()
  if nowMs >= bannedUntilMs + maxMs then banLevel = 0 end
  bannedUntilMs = nowMs + math.min(forMs * 2 ^ banLevel, maxMs)
  banLevel = banLevel + 1
  strikes, strikesFromMs = 0, 0
end

-- Open the windows that now lies in; never a smaller index, a failover may bring an older clock.
local minuteNow, dayNow = math.floor(nowMs / minuteMs), math.floor(nowMs / dayMs)
if minuteNow > minute then minute, minuteUsed = minuteNow, 0 end
if dayNow > day then day, dayUsed = dayNow, 0 end
if strikes > 0 and nowMs >= strikesFromMs + withinMs then strikes, strikesFromMs = 0, 0 end

local unsent = #ARGV > 9
if unsent then
  local unsentStrikes, unsentBannedUntilMs = tonumber(ARGV[10]), tonumber(ARGV[15])
  if tonumber(ARGV[11]) == minute then minuteUsed = minuteUsed + tonumber(ARGV[12]) end
  if tonumber(ARGV[13]) == day then dayUsed = dayUsed + tonumber(ARGV[14]) end
  if unsentBannedUntilMs > bannedUntilMs then
    bannedUntilMs = math.max(bannedUntilMs, math.min(unsentBannedUntilMs, nowMs + maxMs))
    banLevel = math.max(banLevel, tonumber(ARGV[16]))
  end
  if unsentStrikes > 0 and bannedUntilMs <= nowMs then
    if strikes == 0 then strikesFromMs = nowMs end
    strikes = strikes + unsentStrikes
    if strikes >= after then ban() end
  end
end

local admitted, refused, banned = 0, 0, 0
if bannedUntilMs > nowMs then
  banned = requests
else
  admitted = math.max(0, math.min(requests, perMinute - minuteUsed, perDay - dayUsed))
  minuteUsed, dayUsed = minuteUsed + admitted, dayUsed + admitted
  local rest = requests - admitted
  if rest > 0 then
    refused = math.min(rest, math.max(0, after - 1 - strikes))
    banned = rest - refused
    if banned > 0 then
      ban()
    else
      if strikes == 0 then strikesFromMs = nowMs end
      strikes = strikes + refused
    end
  end
end

-- A flood on a banned key changes nothing, and writes nothing.
if unsent or admitted + refused > 0 or (banned > 0 and bannedUntilMs ~= (tonumber(stored[7]) or 0)) then
  redis.call('HSET', KEYS[1], 'minute', minute, 'minuteUsed', minuteUsed, 'day', day, 'dayUsed', dayUsed,
    'strikes', strikes, 'strikesFromMs', strikesFromMs, 'bannedUntilMs', bannedUntilMs, 'banLevel', banLevel)
  redis.call('PEXPIREAT', KEYS[1], math.max(
    (minute + 1) * minuteMs,
    (day + 1) * dayMs,
    strikes > 0 and strikesFromMs + withinMs or 0,
    bannedUntilMs > 0 and bannedUntilMs + maxMs or 0))
end

return { nowMs, admitted, refused, banned,
  minute, minuteUsed, day, dayUsed, strikes, strikesFromMs, bannedUntilMs, banLevel }
