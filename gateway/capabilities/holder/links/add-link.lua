-- Adds a link to the links of a key, unless the key has the largest number of links. Removes links that have ended.
--
-- KEYS[1] the hash of links. Each field is the digest of a token. Each value begins with the end of the link, epoch ms.
-- ARGV    digest, value and end of the new link, the largest number of links, and the digests of links to remove.
--
-- Replies 1, or 0 if the key has the largest number of links.
local links = KEYS[1]
local now = redis.call('TIME')
local nowMs = tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)
for i = 5, #ARGV do
  redis.call('HDEL', links, ARGV[i])
end
local lastMs = tonumber(ARGV[3])
local number = 0
local all = redis.call('HGETALL', links)
for i = 1, #all, 2 do
  local endMs = tonumber(string.match(all[i + 1], '^%d+'))
  if endMs == nil or endMs <= nowMs then
    redis.call('HDEL', links, all[i])
  else
    number = number + 1
    lastMs = math.max(lastMs, endMs)
  end
end
if number >= tonumber(ARGV[4]) then
  return 0
end
redis.call('HSET', links, ARGV[1], ARGV[2])
redis.call('PEXPIREAT', links, string.format('%d', lastMs))
return 1
