--[[
Ends the time in which one process is the only sender of its receivers, so that another process can take over at once.

KEYS[5] is the hash of receivers (claim-due.lua). ARGV: the process.
]]
local stored = redis.call('HGETALL', KEYS[5])
for i = 1, #stored, 2 do
  local isJson, receiver = pcall(cjson.decode, stored[i + 1])
  if isJson and type(receiver) == 'table' and receiver.process == ARGV[1] then
    receiver.process, receiver.untilMs = nil, nil
    redis.call('HSET', KEYS[5], stored[i], cjson.encode(receiver))
  end
end
