--[[
The prototype of leases of units (gateway/redis/unit-leases.md). The gateway does not use this script. One call returns unused
units, charges the requests that wait now, and may reserve more units for later requests of the same process. The key has one
window, and each request costs 1 unit.

KEYS  1. a hash with the counts: `window` (epoch ms / its length), `used` (charged and reserved units) and `bannedUntilMs`.
      2. a hash with the leases of the current window: for each process, the time at which its lease expires.

ARGV  1. the process  2. the requests that wait now  3. the number of units that a call takes, with the units of the waiting
      requests; 0 without leases  4. the units that must remain after a reservation  5. the returned units  6. their window
      7. the limit  8. the length of the window in ms  9. the duration of a lease in ms  10. how long after the end of a lease a
      return may arrive, in ms; 0 if no request waits for a return

Reply  nowMs, window, admitted, reserved, remaining, the end of the lease, the ms after which the process asks again (0 if the
      other requests are refused), and 1 during a ban.
]]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local counts, leases, process = KEYS[1], KEYS[2], ARGV[1]
local asked, size, guard = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local limit, windowMs, leaseMs, graceMs = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])

local window = math.floor(nowMs / windowMs)
local stored = redis.call('HMGET', counts, 'window', 'used', 'bannedUntilMs')
local used = tonumber(stored[2]) or 0
if (tonumber(stored[1]) or 0) < window then
  used = 0
  if size > 0 then redis.call('DEL', leases) end
elseif tonumber(ARGV[6]) == window then
  used = used - tonumber(ARGV[5])
end
local isBanned = (tonumber(stored[3]) or 0) > nowMs
local admitted, reserved, untilMs, waitMs = 0, 0, 0, 0
if not isBanned then
  admitted = math.min(asked, limit - used)
  used = used + admitted
  local room = limit - used
  if asked > 0 and admitted == asked and room > guard then reserved = math.min(math.max(size - asked, 0), room) end
  used = used + reserved
end
if reserved > 0 then
  untilMs = math.min(nowMs + leaseMs, (window + 1) * windowMs)
  redis.call('HSET', leases, process, untilMs)
elseif size > 0 then
  redis.call('HDEL', leases, process)
end
if not isBanned and admitted < asked and graceMs > 0 then
  for _, endMs in ipairs(redis.call('HVALS', leases)) do
    if endMs + graceMs > nowMs then
      local thisMs = math.max(endMs - nowMs, 2)
      if waitMs == 0 or thisMs < waitMs then waitMs = thisMs end
    end
  end
end
redis.call('HSET', counts, 'window', window, 'used', used)
return { nowMs, window, admitted, reserved, limit - used, untilMs, waitMs, isBanned and 1 or 0 }
