#!lua
--[[
Adds the id of a new key to the list of ids, with a unique tag. The tag consists of the time (ms in hex) and random characters.

KEYS[1] is `<prefix>:directory:ids`, a sorted set of `<id>\0<tag>`, all with the score 0.
ARGV[1] is the id, and ARGV[2] has the random characters. The reply is the tag.
]]
local time = redis.call('TIME')
local tag = string.format('%x.%s', time[1] * 1000 + math.floor(time[2] / 1000), ARGV[2])
redis.call('ZADD', KEYS[1], 0, ARGV[1] .. '\0' .. tag)
return tag
