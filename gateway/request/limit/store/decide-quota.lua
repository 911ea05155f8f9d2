--[[
The decision on the requests of keys, in one round trip, on Redis's clock: for each key the same function as
decide-quota.ts. calendar-month.lua stands before it. In a Redis Cluster a call has one key.

Why not rate-limiter-flexible: its windows start at a key's first hit, where ours are those of the UTC calendar; it
charges one window per round trip, where ours are charged all or none; it charges refused requests, which here are
free; and it knows no ban ladder.

KEYS  <prefix>:{<key id>}, one hash per key (HGETALL shows all there is):
  minute, minuteUsed           number of the minute window (epoch ms / its length), units charged in it; likewise
                               second, hour, day and month (months since January 1970), each once it is limited
  strikes, strikesFromMs       refusals counted towards the next ban, when the first of them was
  bannedUntilMs, banLevel      end of the last ban, and how many bans led to it
  liftedMs, resetMs            when a ban was lifted, when all counts were reset: the generations of decide-quota.ts
  grant                        until when other limits hold, epoch ms, then for each window its name and limit, and at the
                               end from when on they hold, if not at once: `9 day 50 from 1`
  changedMs                    when the key itself was changed, of keys that may change without a reload

ARGV  for each key, one after the other:
      its terms: how many windows are limited; bans: after, within ms, for ms, max ms; for each window: its name, its
      length in ms (0: the calendar's month), its limit. Nothing in place of them: the terms of the key before
      requests to decide (0: only take over what a process decided on its own). If not all of them cost 1 unit, runs of
      requests of equal cost in order of arrival, each its requests and what each of them costs: `3*5,1*1`
      changedMs of when the key was read, or nothing: of no interest
      0, or 1 and then what a process decided on its own and never sent: strikes, bannedUntilMs, banLevel, liftedMs,
      resetMs, and for each window in the same order its number and use

Reply  nowMs, and for each key, one after the other: admitted, refused, banned, strikes, strikesFromMs, bannedUntilMs,
       banLevel, liftedMs, resetMs, for each window its number and use, and the field `grant` or 0. Or -1 in place of
       them: the key was changed since it was read, nothing was decided. Or an error's text: under this key's name is
       no hash. Behind a decision on several runs: how many requests of each were admitted

The first write is HSET, the only one that Redis refuses when it is out of memory or read-only: then nothing was written of
any key. A new hash gets its expiry in the same atomic script, so none without one can exist; later the expiry moves
on with what it depends on, and never back, since windows that are not limited now may be again after the next edit.
]]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
-- The reply has room for one key from the beginning: Lua would move a table that grows.
local reply, last = { nowMs, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, 1
-- The arguments before the next one, and before the windows of the terms in force.
local at, windowsAt = 0, 0
local windows, numbers, after, withinMs, forMs, maxMs
-- The fields of the hash that a decision needs.
local names

local function banFrom(bannedUntilMs, banLevel)
  if nowMs >= bannedUntilMs + maxMs then banLevel = 0 end
  return nowMs + math.min(forMs * 2 ^ banLevel, maxMs), banLevel + 1
end

for each = 1, #KEYS do
  local key = KEYS[each]
  if ARGV[at + 1] == '' then
    at = at + 1
  else
    windows = tonumber(ARGV[at + 1])
    after, withinMs = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
    forMs, maxMs = tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5])
    windowsAt = at + 5
    at = windowsAt + 3 * windows
    numbers = 6 + 2 * windows
    names = { 'strikes', 'strikesFromMs', 'bannedUntilMs', 'banLevel', 'liftedMs', 'resetMs' }
    for i = 1, windows do
      local name = ARGV[windowsAt + 3 * i - 2]
      names[5 + 2 * i], names[6 + 2 * i] = name, name .. 'Used'
    end
    names[numbers + 1] = 'grant'
  end
  local requests, units, readMs = tonumber(ARGV[at + 1]), 1, ARGV[at + 2]
  -- Requests and cost of each run, flat, unless all requests cost 1.
  local runs
  if requests == nil then
    runs = {}
    for asked, cost in string.gmatch(ARGV[at + 1], '(%d+)%*(%d+)') do
      runs[#runs + 1], runs[#runs + 2] = tonumber(asked), tonumber(cost)
    end
    requests, units = runs[1], runs[2]
  end
  local unsentAt = ARGV[at + 3] == '1' and at + 4
  at = at + 3
  if unsentAt then at = at + 5 + 2 * windows end
  names[numbers + 2] = readMs ~= '' and 'changedMs' or nil

  local stored = redis.pcall('HMGET', key, unpack(names))
  if stored.err then
    -- Nobody but an operator puts something else under the name of a hash. The other keys are decided.
    if #KEYS == 1 then return stored end
    last = last + 1
    reply[last] = stored.err
  elseif readMs ~= '' and tonumber(readMs) ~= (tonumber(stored[numbers + 2]) or 0) then
    -- Not only an older one: after a failover that lost the change, or once the field has expired, it is read again too.
    last = last + 1
    reply[last] = -1
  else
    local grant = stored[numbers + 1]
    local grantHasEnded = grant and nowMs >= tonumber(string.match(grant, '^%d+') or 0)
    if grantHasEnded then grant = false end
    local granted = grant and nowMs >= tonumber(string.match(grant, ' from (%d+)') or 0) and grant
    local strikes, strikesFromMs = tonumber(stored[1]) or 0, tonumber(stored[2]) or 0
    local bannedUntilMs, banLevel = tonumber(stored[3]) or 0, tonumber(stored[4]) or 0
    local liftedMs, resetMs = tonumber(stored[5]) or 0, tonumber(stored[6]) or 0
    local bannedBefore = bannedUntilMs
    -- Whether anything changes that the expiry depends on.
    local moves = false

    -- Where the reply has this key's fields, in the order of `names`, and where it has those of its windows.
    local fieldsAt, windowFieldsAt = last + 3, last + 8
    if last > 1 then
      for i = last + 1, last + 9 do reply[i] = 0 end
    end
    -- Open the windows that now lies in; never a smaller number, a failover may bring an older clock.
    for i = 1, windows do
      local lengthMs = tonumber(ARGV[windowsAt + 3 * i - 1])
      local now = lengthMs == 0 and monthOf(nowMs) or math.floor(nowMs / lengthMs)
      local number, place = tonumber(stored[5 + 2 * i]) or 0, windowFieldsAt + 2 * i
      if now > number then
        reply[place], reply[place + 1] = now, 0
        moves = true
      else
        reply[place], reply[place + 1] = number, tonumber(stored[6 + 2 * i]) or 0
      end
    end
    if strikes > 0 and nowMs >= strikesFromMs + withinMs then strikes, strikesFromMs = 0, 0 end

    if unsentAt then
      moves = true
      local unsentStrikes, unsentBannedUntilMs = tonumber(ARGV[unsentAt]), tonumber(ARGV[unsentAt + 1])
      if tonumber(ARGV[unsentAt + 4]) == resetMs then
        for i = 1, windows do
          local sent, used = unsentAt + 3 + 2 * i, windowFieldsAt + 2 * i + 1
          if tonumber(ARGV[sent]) == reply[used - 1] then reply[used] = reply[used] + tonumber(ARGV[sent + 1]) end
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
          if strikes >= after then
            bannedUntilMs, banLevel = banFrom(bannedUntilMs, banLevel)
            strikes, strikesFromMs = 0, 0
          end
        end
      end
    end

    local admitted, refused, banned = 0, 0, 0
    local room, charged, run = math.huge, 0, 1 -- `run`: the place of the present run in `runs`
    if bannedUntilMs <= nowMs then
      for i = 1, windows do
        local limit = granted and string.match(granted, ' ' .. names[5 + 2 * i] .. ' (%d+)') or ARGV[windowsAt + 3 * i]
        room = math.min(room, tonumber(limit) - reply[windowFieldsAt + 2 * i + 1])
      end
    end
    repeat
      local fitting = 0
      if bannedUntilMs > nowMs then
        banned = banned + requests
      else
        if units == 0 then fitting = requests
        else fitting = math.max(0, math.min(requests, math.floor((room - charged) / units))) end
        admitted, charged = admitted + fitting, charged + fitting * units
        local rest = requests - fitting
        if rest > 0 then
          moves = true
          local struck = math.min(rest, math.max(0, after - 1 - strikes))
          refused, banned = refused + struck, banned + rest - struck
          if rest > struck then
            bannedUntilMs, banLevel = banFrom(bannedUntilMs, banLevel)
            strikes, strikesFromMs = 0, 0
          else
            if strikes == 0 then strikesFromMs = nowMs end
            strikes = strikes + struck
          end
        end
      end
      requests = nil
      if runs then
        requests, units = runs[run + 2], runs[run + 3]
        -- The admitted requests take the place of a run that was read.
        runs[(run + 1) / 2] = fitting
        run = run + 2
      end
    until requests == nil
    if charged > 0 then
      for i = 1, windows do
        local used = windowFieldsAt + 2 * i + 1
        reply[used] = reply[used] + charged
      end
    end

    reply[last + 1], reply[last + 2], reply[last + 3] = admitted, refused, banned
    reply[fieldsAt + 1], reply[fieldsAt + 2] = strikes, strikesFromMs
    reply[fieldsAt + 3], reply[fieldsAt + 4] = bannedUntilMs, banLevel
    reply[fieldsAt + 5], reply[fieldsAt + 6] = liftedMs, resetMs
    last = fieldsAt + numbers + 1
    reply[last] = grant or 0
    if run > 3 then
      for i = 1, (run - 1) / 2 do reply[last + i] = runs[i] end
      last = last + (run - 1) / 2
    end

    -- A flood on a banned key changes nothing, and writes nothing. Otherwise only what changed is written: mostly two
    -- counts.
    if unsentAt or admitted + refused > 0 or bannedUntilMs ~= bannedBefore then
      local fields, count = {}, 0
      for i = 1, numbers do
        if reply[fieldsAt + i] ~= (tonumber(stored[i]) or 0) then
          fields[count + 1], fields[count + 2] = names[i], reply[fieldsAt + i]
          count = count + 2
        end
      end
      if count > 0 then redis.call('HSET', key, unpack(fields)) end
      if grantHasEnded then redis.call('HDEL', key, 'grant') end
      if moves then
        local expiresMs = math.max(
          strikes > 0 and strikesFromMs + withinMs or 0,
          bannedUntilMs > 0 and bannedUntilMs + maxMs or 0,
          liftedMs > 0 and liftedMs + maxMs or 0)
        for i = 1, windows do
          local lengthMs = tonumber(ARGV[windowsAt + 3 * i - 1])
          local ends = reply[windowFieldsAt + 2 * i] + 1
          expiresMs = math.max(expiresMs, lengthMs == 0 and monthStartMs(ends) or ends * lengthMs)
        end
        -- The hash lives a second longer than it matters. PEXPIREAT reads the clock after `nowMs` was read, and deletes at
        -- once a hash that has ended in between; the same key may come again in this call.
        expiresMs = expiresMs + 1000
        -- A hash that is new has no expiry: PTTL says -1.
        if redis.call('PTTL', key) + nowMs < expiresMs then redis.call('PEXPIREAT', key, expiresMs) end
      end
    end
  end
end

-- Without room that no key filled.
for i = last + 1, #reply do reply[i] = nil end
return reply
