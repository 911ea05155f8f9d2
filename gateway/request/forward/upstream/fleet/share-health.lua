--[[
Adds the results of a process's health checks to the list of failing targets, and returns the list if it has changed.

`KEYS[1]` is a hash with a field for each target with failed checks, and the field `version`, which changes with the list. The value of a
target is a JSON object:

  began    when the first failed check began, epoch ms by Redis's clock
  last     when the last failed check began
  by       the first processes that reported failures, as many as must agree
  failing  true when the fleet has confirmed the failure
  passed   the processes that reported passed checks after that, if no failed check has contradicted them
  passedMs when the first of these checks passed
  health   `down`, or `silent` if at least one report is `silent`
  reason   the reason of the last report
  at       when the last report arrived

  cleared  the end of the passed check that ended the last suspicion or failure. A failed check that began earlier changes nothing, because
           the target may have recovered during this check

The value of a target that has passed its checks again has only `cleared` and `at`.

The first five arguments are the id of the process, the version that the process has, how long a target is kept after its last report (ms),
the maximum number of targets, and the time that must pass before the fleet confirms a failure (ms). Five arguments follow for each result:
the target, its health, the age of the result (ms), the number of processes that must agree, and the reason. A passed check has the age of
its end. A failed check has the age of its beginning. Ages are independent of the clocks of processes.

Returns the current version. If the process has another version, the targets and their JSON objects follow.
]]
local hash = KEYS[1]
local processId, known = ARGV[1], ARGV[2]
local keptMs, targetsMax, confirmMs = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local versionField = 'version'
local hasChanged = false

local function read(target)
  local text = redis.call('HGET', hash, target)
  return text and cjson.decode(text)
end

local function write(target, entry)
  entry.at = nowMs
  redis.call('HSET', hash, target, cjson.encode(entry))
  redis.call('PEXPIRE', hash, keptMs)
end

local function clear(target, passedMs)
  write(target, { cleared = passedMs })
  hasChanged = true
end

-- Returns all targets with their JSON objects, and removes targets without recent reports.
local function list()
  local fields, kept = redis.call('HGETALL', hash), {}
  for i = 1, #fields, 2 do
    local target, text = fields[i], fields[i + 1]
    if target ~= versionField then
      if cjson.decode(text).at < nowMs - keptMs then
        redis.call('HDEL', hash, target)
      else
        kept[#kept + 1] = target
        kept[#kept + 1] = text
      end
    end
  end
  return kept
end

local function add(ids)
  for _, id in ipairs(ids) do
    if id == processId then return end
  end
  ids[#ids + 1] = processId
end

local function notePass(target, passedMs, agreeing)
  local entry = read(target)
  if not entry or not entry.began or passedMs < entry.began then return end
  if not entry.failing then return clear(target, passedMs) end
  if passedMs < entry.last then return end
  entry.passed = entry.passed or {}
  entry.passedMs = math.min(entry.passedMs or passedMs, passedMs)
  add(entry.passed)
  if #entry.passed >= agreeing then return clear(target, passedMs) end
  write(target, entry)
end

local function noteFailure(target, beganMs, agreeing, health, reason)
  local entry = read(target) or {}
  if entry.cleared and beganMs <= entry.cleared then return end
  if not entry.began then
    if #list() / 2 >= targetsMax then return end
    entry.began, entry.last, entry.by, entry.health = beganMs, beganMs, {}, health
    hasChanged = true
  end
  entry.began = math.min(entry.began, beganMs)
  entry.last = math.max(entry.last, beganMs)
  -- Only a check that began after a passed check contradicts the passed check.
  if entry.passedMs and beganMs >= entry.passedMs then entry.passed, entry.passedMs = nil, nil end
  if health ~= entry.health then entry.health = 'silent' end
  entry.reason = reason
  if not entry.failing then
    if #entry.by < agreeing then add(entry.by) end
    if #entry.by >= agreeing and nowMs - entry.began >= confirmMs then
      entry.failing = true
      hasChanged = true
    end
  end
  write(target, entry)
end

for i = 6, #ARGV, 5 do
  local target, health, agreeing, reason = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 3]), ARGV[i + 4]
  local atMs = nowMs - tonumber(ARGV[i + 2])
  if health == 'healthy' then
    notePass(target, atMs, agreeing)
  else
    noteFailure(target, atMs, agreeing, health, reason)
  end
end

local version = redis.call('HGET', hash, versionField) or '0'
if hasChanged then
  version = string.format('%.0f', math.max(nowMs, tonumber(version) + 1))
  redis.call('HSET', hash, versionField, version)
  redis.call('PEXPIRE', hash, keptMs)
end
if version == known then return { version } end
return { version, unpack(list()) }
