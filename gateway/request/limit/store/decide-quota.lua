--[[
Decides the requests of keys in one round trip, on Redis's clock. For each key the script does the same as decide-quota.ts. The
gateway puts calendar-month.lua before this script. In a Redis Cluster, each call has one key.

The library rate-limiter-flexible cannot replace this script, for four reasons. The library's windows start at a key's first
request, but the windows of this script follow the UTC calendar. The library charges one window per round trip, but this script
charges all windows together. The library charges refused requests, but this script does not. The library has no bans that
become longer each time.

KEYS  <prefix>:{<key id>}: one hash per key, with all counts of the key. The hash has these fields:

  `minute`, `minuteUsed`: the number of the minute window (epoch ms / its length), and the units charged in this window. Each
  other limited window (`second`, `hour`, `day`, `month`) has two such fields. Month 0 is January 1970.

  `strikes`, `strikesFromMs`: the number of refusals that count towards the next ban, and the time of the first of these refusals.

  `bannedUntilMs`, `banLevel`: the end of the last ban, and the number of consecutive bans.

  `liftedMs`, `resetMs`: the times of the last lifted ban and of the last reset. decide-quota.ts describes these fields.

  `grant`: temporary limits. The field contains the end of the temporary limits in epoch ms, then the name and limit of each
  window. For limits that start later, the field also contains the start, for example `9 day 50 from 1`. For a while after a
  secret of a key of the configuration has leaked, the field ends with a mark, for example `0 leaked 1795` (note-leak.lua). The
  mark shares this field, so a key without a mark costs nothing.

  `leases`: for each process, its name, the number of requests of the key that it serves now, and the time at which its lease
  expires, for example `p1 3 1795 p2 1 1796`. Only keys with a concurrency limit have this field.

  `changedMs`: the time of the last change of the key itself. Only keys of the key directory have this field.

  `told`: the reported thresholds. For each window with a reported threshold, the field contains the name and the number of the
  window, and the highest reported percentage, for example `day 20700 80 month 680 100`. The script confirm-told.lua writes this
  field.

  `trial`: how the counts of the trial differ from the counts of the plan, packed with `struct`. The field begins with strikes,
  strikesFromMs, bannedUntilMs and banLevel of the trial. The set of the windows as bits follows: 1 is the second, 2 is the minute, and so
  on. For each window, its number and the difference of the charged units follow. A key whose counts are equal has no such field. The
  difference of an ended window has no effect. If the windows of the plan or of the trial have changed, the field has no effect.

ARGV  the arguments of the keys, one key after the other. Each key has these arguments:

  1. The terms of the key, which are several arguments. The first argument is the number of limited windows. If the gateway
     reports thresholds, the lowest percentage follows in the same argument, for example `2 80`. The next four arguments are the
     ban policy: after, within ms, for ms, max ms. The next arguments are, for each window, its name, its length in ms (0 for a
     calendar month) and its limit. If the terms are the same as for the previous key, all these arguments are replaced by one
     empty string.

     If the plan has a trial, the first number is -(windows + 8 * the set of the windows as bits). The terms end with the limit of the
     trial for each window. The windows are all windows that the plan or the trial limits. The limit `inf` means no limit.

  2. The number of requests to decide. If the number is 0, the script only adds the decisions of item 4. If not all requests cost
     1 unit, the argument is a list of runs in order of arrival. Each run has the number of requests and the cost of each request,
     for example `3*5,1*1`. If the requests have another cost in the trial, this cost follows, for example `3*0*5`.

  3. The changedMs that the process has read for the key. For a key of the configuration, the argument is empty, or `-` and the
     time of the last leak that the process knows. The script then compares this time with the mark in the field `grant`.

  4. `1` if the process has unsent decisions that it made without Redis, and otherwise `0`. After a `1`, the decisions follow as
     these arguments: strikes, bannedUntilMs, banLevel, liftedMs, resetMs, and for each window its number and the units charged
     in this window. If the plan has a trial, the decisions of the trial follow in the same form. If the key has a concurrency limit,
     four parts follow the `0` or `1` in the same argument, for example
     `0 10 p1 3 30000`. The four parts are the limit, the name of the process, the requests of the key that this process serves
     now, and the duration of its lease in ms.

Reply  nowMs, and then the results of the keys, one key after the other. Each result has these parts: admitted, refused, banned,
  strikes, strikesFromMs, bannedUntilMs, banLevel, liftedMs, resetMs, for each window its number and charged units, and the field
  `grant` or 0.

  If the gateway reports thresholds, the next part is the field `told` when an hour, day or month has reached the lowest percentage of
  its limit, and otherwise 0. The gateway compares the field with the counts, and reports what is missing. Each call therefore
  returns a threshold until confirm-told.lua has written the threshold to the field. With limits for four windows, a decision with
  thresholds takes up to 3 % more CPU time of Redis, and 8 % more from the lowest percentage on.

  If the key has a concurrency limit, the next part is the number of requests that exceeded this limit. These requests are the
  last requests of the call. If the call has several runs for the key, the next part is the number of admitted requests of each
  run.

  If the plan has a trial, the last part is the field `trial` after the call, or 0 without this field. The trial then admitted all
  requests, as the plan did. Otherwise the last parts are -1, the field `trial` or 0, the requests that the trial admitted, refused and
  banned, and for several runs the number of admitted requests of each run. The remaining requests exceeded the concurrency limit.

  If the key has changed since the process read it, no request is decided, and the reply for the key is -1. If the Redis
  key is not a hash, the reply for the key is the text of an error.

HSET is the first write. HSET is also the only write that fails when Redis is out of memory or read-only. If a call fails, it
has therefore not changed any key. The script sets the expiry of a new hash, so every hash has an expiry. A later call never
shortens the expiry. The count of a window is kept even if an edit removes its limit, because the next edit may restore the limit.
]]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
-- `reply` starts with enough entries for the reply of one key, so that Lua need not copy the table to a larger table.
local reply, last = { nowMs, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, 1
-- `at` is the number of arguments that were read. `windowsAt` is the number of arguments before the windows of the current
-- terms.
local at, windowsAt = 0, 0
local windows, lowest, numbers, after, withinMs, forMs, maxMs
-- The number of arguments before the limits of the trial; nil without a trial. `trialWindows` is the set of the windows as bits.
local trialAt, trialWindows
-- The form of the field `trial` for two windows. Other numbers of windows have a form of their own.
local trialForm
-- How long the mark of a leak stays, as `leakNotedMs` of the gateway.
local leakNotedMs = 3600000
-- The names of the hash fields that a decision needs.
local names

local function banFrom(bannedUntilMs, banLevel)
  if nowMs >= bannedUntilMs + maxMs then banLevel = 0 end
  return nowMs + math.min(forMs * 2 ^ banLevel, maxMs), banLevel + 1
end

-- Returns the limit of a window in the field `grant`; nil if the field has no limit for the window.
local function grantedLimit(grant, window)
  return tonumber(string.match(grant, ' ' .. window .. ' (%d+)'))
end

for each = 1, #KEYS do
  local key = KEYS[each]
  if ARGV[at + 1] == '' then
    at = at + 1
  else
    windows, lowest, trialAt = tonumber(ARGV[at + 1]), nil, nil
    if windows == nil then
      windows, lowest = string.match(ARGV[at + 1], '^(%S+) (%d+)$')
      windows, lowest = tonumber(windows), tonumber(lowest)
    end
    local isTried = windows < 0
    if isTried then
      local both = -windows
      windows = both % 8
      trialWindows = (both - windows) / 8
      trialForm = windows == 2 and '<I4ddI2BI5dI5d' or '<I4ddI2B' .. string.rep('I5d', windows)
    end
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
    if isTried then
      names[numbers + 2] = 'trial'
      trialAt = at
      at = trialAt + windows
    end
  end
  local asked, readMs = ARGV[at + 1], ARGV[at + 2]
  local requests, units = tonumber(asked), 1
  local leaksReadMs = 0
  if string.byte(readMs) == 45 then leaksReadMs, readMs = -tonumber(readMs), '' end -- 45 is `-`
  -- The number of requests and the cost of each run, as a flat list. Nil if all requests cost 1.
  local runs
  if requests == nil then
    runs = {}
    for number, cost in string.gmatch(asked, '(%d+)%*(%d+)') do
      runs[#runs + 1], runs[#runs + 2] = tonumber(number), tonumber(cost)
    end
    requests, units = runs[1], runs[2]
  end
  local item = ARGV[at + 3]
  local unsentAt = string.byte(item) == 49 and at + 4 -- 49 is `1`
  -- The concurrency limit of the key, and the requests that the calling process serves.
  local most, process, active, leaseMs
  if #item > 1 then most, process, active, leaseMs = string.match(item, ' (%d+) (%S+) (%d+) (%d+)$') end
  at = at + 3
  if unsentAt then at = at + (trialAt and 10 + 4 * windows or 5 + 2 * windows) end
  local optional = trialAt and numbers + 3 or numbers + 2
  names[optional] = readMs ~= '' and 'changedMs' or most and 'leases' or nil
  names[optional + 1] = readMs ~= '' and most and 'leases' or nil

  local stored = redis.pcall('HMGET', key, unpack(names))
  local leakedMs = stored[numbers + 1] and tonumber(string.match(stored[numbers + 1], ' leaked (%d+)'))
  if stored.err then
    -- The Redis key is not a hash, probably because an operator has stored another value there. The other keys are still
    -- decided.
    if #KEYS == 1 then return stored end
    last = last + 1
    reply[last] = stored.err
  elseif readMs ~= '' and tonumber(readMs) ~= (tonumber(stored[optional]) or 0) then
    -- The stored changedMs can be older than readMs if a failover lost the change. If the
    -- hash has expired, changedMs counts as 0.
    last = last + 1
    reply[last] = -1
  elseif leakedMs and leakedMs > leaksReadMs and readMs == '' and requests > 0 then
    last = last + 1
    reply[last] = -1
  else
    local grant = stored[numbers + 1]
    local grantHasEnded = grant and nowMs >= tonumber(string.match(grant, '^%d+') or 0)
    if grantHasEnded then grant = false end
    local granted = grant and nowMs >= tonumber(string.match(grant, ' from (%d+)') or 0) and grant
    -- The numbers replace the texts in `stored`. A missing field is 0.
    for i = 1, numbers do
      local field = stored[i]
      stored[i] = field and tonumber(field) or 0
    end
    local strikes, strikesFromMs, bannedUntilMs, banLevel = stored[1], stored[2], stored[3], stored[4]
    local liftedMs, resetMs = stored[5], stored[6]
    local bannedBefore = bannedUntilMs
    -- Whether a value that determines the expiry has changed.
    local moves = false

    -- `fieldsAt` is the index in `reply` before the fields of this key. The fields have the order of `names`.
    -- `windowFieldsAt` is the index before the fields of its windows.
    local fieldsAt, windowFieldsAt = last + 3, last + 8
    if last > 1 then
      for i = last + 1, last + 9 do reply[i] = 0 end
    end
    -- Start the current windows. The number of a window never decreases, even if the clock of a new master is behind.
    for i = 1, windows do
      local lengthMs = tonumber(ARGV[windowsAt + 3 * i - 1])
      local now = lengthMs == 0 and monthOf(nowMs) or math.floor(nowMs / lengthMs)
      local number, place = stored[5 + 2 * i], windowFieldsAt + 2 * i
      if now > number then
        reply[place], reply[place + 1] = now, 0
        moves = true
      else
        reply[place], reply[place + 1] = number, stored[6 + 2 * i]
      end
    end
    local slots, otherLeases, storedLeases = math.huge, '', ''
    if most then
      slots = most - active
      storedLeases = stored[readMs ~= '' and optional + 1 or optional] or ''
      for name, held, untilMs in string.gmatch(storedLeases, '(%S+) (%d+) (%d+)') do
        if name ~= process and tonumber(untilMs) > nowMs then
          slots = slots - held
          otherLeases = otherLeases .. name .. ' ' .. held .. ' ' .. untilMs .. ' '
        end
      end
    end

    local admitted, refused, banned, crowded, charged
    -- The place of the current run in `runs`.
    local run
    -- The number of units, times 100, after which the first hour, day or month has reached the lowest threshold.
    local belowLowest = math.huge
    -- The loop decides the requests with the limits of the plan. If the trial may decide a request differently, or if its counts may
    -- change, the loop decides all requests again, with the limits and counts of the trial. `counts` contains the number and the charged
    -- units of each window.
    local counts, countsAt, limitsAt, stride, unsentHere = reply, windowFieldsAt, windowsAt, 3, unsentAt
    -- The field `trial` before and after the call, and the outcome of the trial if it differs from the outcome of the plan.
    local trialBefore, trialAfter, admittedInTrial, refusedInTrial, bannedInTrial
    local isTrial, again = false, false
    -- While the trial is decided: the free places of the plan before the current run, and the requests of each run that the plan admitted.
    local places, admittedOf, crowdedOfPlan, chargedOfPlan, admittedOfPlan, refusedOfPlan, strikesOfPlan, bannedOfPlan
    local trialExpiresMs = 0
    local room = math.huge
    repeat
      if strikes > 0 and nowMs >= strikesFromMs + withinMs then strikes, strikesFromMs = 0, 0 end

      if unsentHere then
        moves = true
        local unsentStrikes, unsentBannedUntilMs = tonumber(ARGV[unsentHere]), tonumber(ARGV[unsentHere + 1])
        if tonumber(ARGV[unsentHere + 4]) == resetMs then
          for i = 1, windows do
            local sent, used = unsentHere + 3 + 2 * i, countsAt + 2 * i + 1
            if tonumber(ARGV[sent]) == counts[used - 1] then counts[used] = counts[used] + tonumber(ARGV[sent + 1]) end
          end
        end
        if tonumber(ARGV[unsentHere + 3]) == liftedMs then
          if unsentBannedUntilMs > bannedUntilMs then
            bannedUntilMs = math.max(bannedUntilMs, math.min(unsentBannedUntilMs, nowMs + maxMs))
            banLevel = math.max(banLevel, tonumber(ARGV[unsentHere + 2]))
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

      admitted, refused, banned, crowded, charged, run = 0, 0, 0, 0, 0, 1
      if not isTrial and (bannedUntilMs <= nowMs or lowest) or unsentHere then
        room = math.huge
        for i = 1, windows do
          local name, used, limit = names[5 + 2 * i], counts[countsAt + 2 * i + 1], ARGV[limitsAt + stride * i]
          -- A grant does not limit a window without a limit.
          limit = tonumber(granted and limit ~= 'inf' and grantedLimit(granted, name) or limit)
          room = math.min(room, limit - used)
          if not isTrial and lowest and name ~= 'second' and name ~= 'minute' then
            belowLowest = math.min(belowLowest, lowest * limit - 100 * used)
          end
        end
      end
      repeat
        local fitting, crowdedOut = 0, 0
        if isTrial and most then
          -- The concurrency limit refuses the same requests as for the plan.
          local left = places - admittedOf[(run + 1) / 2]
          if left <= 0 then crowdedOut = requests - math.min(requests, math.max(0, places)) end
          requests, places = requests - crowdedOut, left
        end
        if bannedUntilMs > nowMs then
          banned = banned + requests
        else
          if units == 0 then fitting = requests
          elseif room - charged >= units then fitting = math.min(requests, math.floor((room - charged) / units)) end
          if fitting > slots then fitting = math.max(0, slots) end
          slots = slots - fitting
          admitted, charged = admitted + fitting, charged + fitting * units
          local rest = requests - fitting
          if rest > 0 and slots <= 0 then
            crowded = crowded + rest
          elseif rest > 0 then
            local struck = after - 1 - strikes
            if struck < 0 then struck = 0 elseif struck > rest then struck = rest end
            refused, banned = refused + struck, banned + rest - struck
            if rest > struck then
              moves = true
              bannedUntilMs, banLevel = banFrom(bannedUntilMs, banLevel)
              strikes, strikesFromMs = 0, 0
            else
              if strikes == 0 then moves, strikesFromMs = true, nowMs end
              strikes = strikes + struck
            end
          end
        end
        if crowdedOut > 0 then
          if bannedUntilMs > nowMs then banned = banned + crowdedOut else crowded = crowded + crowdedOut end
        end
        requests = nil
        if runs then
          requests, units = runs[run + 2], runs[run + 3]
          -- The script no longer needs this entry of `runs`, so it stores the number of admitted requests in this entry.
          runs[(run + 1) / 2] = fitting
          run = run + 2
        end
      until requests == nil
      if charged > 0 then
        for i = 1, windows do
          local used = countsAt + 2 * i + 1
          counts[used] = counts[used] + charged
        end
      end

      if isTrial then
        again = false
        if runs then admittedOf, runs = runs, admittedOf end
        local differs = strikes ~= strikesOfPlan or strikesFromMs ~= reply[fieldsAt + 2]
          or bannedUntilMs ~= bannedOfPlan or banLevel ~= reply[fieldsAt + 4]
        for i = 3, 2 * windows + 1, 2 do
          local difference = counts[i + 4] - reply[windowFieldsAt + i]
          if difference ~= 0 then differs = true end
          counts[i + 4] = difference
        end
        trialAfter = false
        if differs then
          trialAfter = struct.pack(trialForm, strikes, strikesFromMs, bannedUntilMs, banLevel, unpack(counts, 5, 5 + 2 * windows))
          if strikes > 0 then trialExpiresMs = strikesFromMs + withinMs end
          if bannedUntilMs > 0 then trialExpiresMs = math.max(trialExpiresMs, bannedUntilMs + maxMs) end
        end
        -- The variables have the outcome of the plan again.
        admittedInTrial, refusedInTrial, bannedInTrial = admitted, refused, banned
        crowded, charged, admitted, refused = crowdedOfPlan, chargedOfPlan, admittedOfPlan, refusedOfPlan
        strikes, strikesFromMs, bannedUntilMs = strikesOfPlan, reply[fieldsAt + 2], bannedOfPlan
      else
        reply[last + 1], reply[last + 2], reply[last + 3] = admitted, refused, banned
        reply[fieldsAt + 1], reply[fieldsAt + 2] = strikes, strikesFromMs
        reply[fieldsAt + 3], reply[fieldsAt + 4] = bannedUntilMs, banLevel
        if trialAt then
          trialBefore = stored[numbers + 2]
          trialAfter = trialBefore
          -- The counts of the trial before the call, or false if they are equal to the counts of the plan.
          local known = trialBefore and #trialBefore == 23 + 13 * windows and { struct.unpack(trialForm, trialBefore) }
          if known and known[5] ~= trialWindows then known = false end
          room = math.huge
          for i = 2, 2 * windows, 2 do
            local number, used, limit = reply[windowFieldsAt + i], reply[windowFieldsAt + i + 1] - charged, ARGV[trialAt + i / 2]
            if unsentAt then used = number == stored[5 + i] and stored[6 + i] or 0 end
            if known then
              if known[i + 4] == number then used = used + known[i + 5] end
              if used < 0 then used, again = 0, true end
              known[i + 4], known[i + 5] = number, used
            end
            -- The limit is a text. The subtraction converts a text to a number faster than `tonumber`.
            local left = (granted and limit ~= 'inf' and grantedLimit(granted, names[5 + i]) or limit) - used
            if left < room then room = left end
          end
          -- If the plan admits all requests, and the trial has room for them, the trial admits them too, and the differences do not change.
          again = again or unsentAt or charged > room or refused + banned + crowded > 0 or known and known[3] > nowMs
            or runs and string.find(asked, '%*%d+%*')
          if again then
            isTrial, counts, countsAt, limitsAt, stride = true, known, 4, trialAt, 1
            crowdedOfPlan, chargedOfPlan, admittedOfPlan, refusedOfPlan = crowded, charged, admitted, refused
            strikesOfPlan, bannedOfPlan = strikes, bannedUntilMs
            if known then
              strikes, strikesFromMs, bannedUntilMs, banLevel = known[1], known[2], known[3], known[4]
            else
              strikes, strikesFromMs, bannedUntilMs, banLevel = stored[1], stored[2], stored[3], stored[4]
              counts = { 0, 0, 0, 0, trialWindows, 0, 0, 0, 0 }
              for i = 2, 2 * windows, 2 do
                local number, used = reply[windowFieldsAt + i], reply[windowFieldsAt + i + 1] - charged
                if unsentAt then used = number == stored[5 + i] and stored[6 + i] or 0 end
                counts[i + 4], counts[i + 5] = number, used
              end
            end
            unsentHere = unsentAt and unsentAt + 5 + 2 * windows
            places, slots, admittedOf = slots + admitted, math.huge, runs or most and { admitted }
            if runs == nil then
              requests = admitted + refused + banned + crowded
            else
              -- The lowest limit of the trial, with and without the grant.
              local lowestLimit, lowestStated = math.huge, math.huge
              for i = 1, windows do
                local stated = tonumber(ARGV[trialAt + i])
                local limit = granted and stated < math.huge and grantedLimit(granted, names[5 + 2 * i]) or stated
                lowestLimit, lowestStated = math.min(lowestLimit, limit), math.min(lowestStated, stated)
              end
              runs = {}
              for number, cost, inTrial in string.gmatch(asked, '(%d+)%*(%d+)%*?(%d*)') do
                cost = tonumber(inTrial) or tonumber(cost)
                -- A request that costs more than a limit would get 403, and would not be charged. If only a grant makes the limit so low,
                -- a window would refuse the request.
                if cost > lowestLimit and cost > lowestStated then cost = 0 end
                runs[#runs + 1], runs[#runs + 2] = tonumber(number), cost
              end
              requests, units = runs[1], runs[2]
            end
          end
        end
      end
    until not again

    reply[fieldsAt + 5], reply[fieldsAt + 6] = liftedMs, resetMs
    last = fieldsAt + numbers + 1
    reply[last] = grant or 0
    if lowest then
      last = last + 1
      reply[last] = 100 * charged >= belowLowest and (redis.call('HGET', key, 'told') or '') or 0
    end
    if most then
      last = last + 1
      reply[last] = crowded
    end
    if run > 3 then
      for i = 1, (run - 1) / 2 do reply[last + i] = runs[i] end
      last = last + (run - 1) / 2
    end
    if isTrial then
      reply[last + 1], reply[last + 2] = -1, trialAfter or 0
      reply[last + 3], reply[last + 4], reply[last + 5] = admittedInTrial, refusedInTrial, bannedInTrial
      last = last + 5
      if run > 3 then
        for i = 1, (run - 1) / 2 do reply[last + i] = admittedOf[i] end
        last = last + (run - 1) / 2
      end
    elseif trialAt then
      last = last + 1
      reply[last] = trialAfter or 0
    end

    -- Requests of a banned key change nothing, so nothing is written. A call for a key without a ban writes only the changed
    -- fields, usually two counts.
    if unsentAt or most or admitted + refused > 0 or bannedUntilMs ~= bannedBefore or trialAfter ~= trialBefore then
      local fields, count = { 0, 0, 0, 0, 0, 0, 0, 0 }, 0
      local leases = otherLeases
      if most and active + admitted > 0 then
        leases = leases .. process .. ' ' .. active + admitted .. ' ' .. nowMs + leaseMs
        moves = true
      end
      if leases ~= '' and leases ~= storedLeases then
        fields[1], fields[2] = 'leases', leases
        count = 2
      end
      for i = 1, numbers do
        if reply[fieldsAt + i] ~= stored[i] then
          fields[count + 1], fields[count + 2] = names[i], reply[fieldsAt + i]
          count = count + 2
        end
      end
      if trialAfter and trialAfter ~= trialBefore then
        fields[count + 1], fields[count + 2] = 'trial', trialAfter
        count = count + 2
      end
      if count > 0 then redis.call('HSET', key, unpack(fields, 1, count)) end
      if trialBefore and not trialAfter then redis.call('HDEL', key, 'trial') end
      if grantHasEnded and (not leakedMs or nowMs > leakedMs + leakNotedMs) then redis.call('HDEL', key, 'grant') end
      if leases == '' and storedLeases ~= '' then redis.call('HDEL', key, 'leases') end
      if moves then
        local expiresMs = math.max(
          trialExpiresMs,
          leases ~= '' and nowMs + leaseMs or 0,
          strikes > 0 and strikesFromMs + withinMs or 0,
          bannedUntilMs > 0 and bannedUntilMs + maxMs or 0,
          liftedMs > 0 and liftedMs + maxMs or 0)
        for i = 1, windows do
          local lengthMs = tonumber(ARGV[windowsAt + 3 * i - 1])
          local ends = reply[windowFieldsAt + 2 * i] + 1
          expiresMs = math.max(expiresMs, lengthMs == 0 and monthStartMs(ends) or ends * lengthMs)
        end
        -- The hash expires one second later than necessary, so that it still exists if this call decides the same key again.
        -- PEXPIREAT reads the clock later than this script, and would delete a hash whose expiry has just passed.
        expiresMs = expiresMs + 1000
        -- PTTL returns -1 for a new hash without an expiry.
        if redis.call('PTTL', key) + nowMs < expiresMs then redis.call('PEXPIREAT', key, expiresMs) end
      end
    end
  end
end

-- The reply ends before the first entry without a value.
reply[last + 1] = nil
return reply
