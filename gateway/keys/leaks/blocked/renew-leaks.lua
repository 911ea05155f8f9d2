#!lua flags=allow-oom
--[[
Notes that the configuration of a gateway still has some leaked secrets. Removes the leaks that no gateway needs any more.

KEYS[1] is the hash that add-leak.lua describes. ARGV[1] is the time in ms after which a leak is removed if no gateway has needed it, or 0
if the script must not remove a leak. The other arguments are the digests that the configuration of the caller has.
]]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local keptMs, needed = tonumber(ARGV[1]), {}
for i = 2, #ARGV do needed[ARGV[i]] = true end

local stored = redis.call('HGETALL', KEYS[1])
local version, left, removed = 0, 0, {}
local neededMs = {}
for i = 1, #stored, 2 do
  local digest = string.match(stored[i], '^(%x+):needed$')
  if digest then neededMs[digest] = tonumber(stored[i + 1]) or 0 end
end
for i = 1, #stored, 2 do
  local name = stored[i]
  if name == 'version' then
    version = tonumber(stored[i + 1]) or 0
  elseif string.match(name, '^%x+$') then
    if needed[name] then
      redis.call('HSET', KEYS[1], name .. ':needed', nowMs)
      left = left + 1
    elseif keptMs > 0 and nowMs - (neededMs[name] or 0) > keptMs then
      removed[#removed + 1] = name
    else
      left = left + 1
    end
  end
end
if #removed == 0 then return 0 end
if left == 0 then return redis.call('DEL', KEYS[1]) end
for _, name in ipairs(removed) do redis.call('HDEL', KEYS[1], name, name .. ':needed') end
redis.call('HSET', KEYS[1], 'version', math.max(nowMs, version) + 1)
return #removed
