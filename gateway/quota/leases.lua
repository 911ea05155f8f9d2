--[[
The concurrency limit. The hash field `leases` has, for each process, its name, the number of the key's requests that it serves now, and
the end of its lease in epoch ms, for example `p1 3 1795 p2 1 1796`. A process that is killed cannot end its lease, so each lease
expires. Only keys with a concurrency limit have this field.

  lease  what the calling process reports: max (the limit of the key), process, active (its requests, without the requests of the
         call) and leaseMs
]]

-- Returns the number of requests that may begin now, and the unexpired leases of the other processes.
local function freeSlots(leases, lease)
  local slots, others = lease.max - lease.active, ''
  for process, requests, untilMs in string.gmatch(leases, '(%S+) (%d+) (%d+)') do
    if process ~= lease.process and tonumber(untilMs) > nowMs then
      slots = slots - requests
      others = others .. process .. ' ' .. requests .. ' ' .. untilMs .. ' '
    end
  end
  return slots, others
end

-- The field after a call; false without requests.
local function renewLease(others, lease, admitted)
  local requests = lease.active + admitted
  if requests == 0 then return others ~= '' and others end
  return others .. lease.process .. ' ' .. requests .. ' ' .. nowMs + lease.leaseMs
end
