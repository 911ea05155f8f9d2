-- This code does the gateway's work in nginx. The code finds keys by digest, uses the gateway's own Redis Function for both windows, and
-- sends all headers. The connections to Redis are persistent.

local redis = require "nginx.redis"
local sha256 = require "nginx.sha256"
local str = require "nginx.string"

local minuteMs, dayMs = 60000, 86400000
local exposed = "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit, RateLimit-Policy, "
  .. "Retry-After, X-Request-Id, Deprecation, Sunset, Link, X-Stability"

return function(options)
  local keys, redisPort, library = options.keys, options.redisPort, options.library
  local isLoaded = false
  local hasher = sha256:new()

  local function digest(secret)
    hasher:reset()
    hasher:update(secret)
    return str.to_hex(hasher:final())
  end

  local function decide(key)
    local connection = redis:new()
    connection:set_timeout(5000)
    assert(connection:connect("127.0.0.1", redisPort))
    if not isLoaded then isLoaded = assert(connection["function"](connection, "load", "replace", library)) end
    local name = "nginx:{" .. key.id .. "}"
    local reply = assert(connection:fcall("bench_nginx_decide", 1, name, key.perMinute, key.perDay))
    connection:set_keepalive(60000, 2048)
    return reply
  end

  local function answerError(status, code, message)
    ngx.status = status
    ngx.header["Content-Type"] = "application/json"
    ngx.header["Cache-Control"] = "no-store"
    local body = '{"code":"' .. code .. '","message":"' .. message .. '","status":' .. status .. '}'
    ngx.header["Content-Length"] = #body
    ngx.print(body)
    return ngx.exit(status)
  end

  local gate = {}

  function gate.access()
    local authorization = ngx.var.http_authorization
    local secret = authorization and string.match(authorization, "^[Bb]earer +(%S+)$")
    local key = secret and keys[digest(secret)]
    if not key then
      ngx.header["WWW-Authenticate"] = 'Bearer realm="bench"'
      return answerError(401, "invalid_key", "The API key is not valid.")
    end
    ngx.var.key_id, ngx.var.key_plan = key.id, key.plan

    local reply = decide(key)
    local nowMs, admitted, banned, bannedUntilMs = reply[1], reply[2], reply[3], reply[4]
    local minuteRemaining = math.max(0, key.perMinute - reply[6])
    local dayRemaining = math.max(0, key.perDay - reply[8])
    local minuteResetMs, dayResetMs = (reply[5] + 1) * minuteMs, (reply[7] + 1) * dayMs
    local ctx = ngx.ctx
    if dayRemaining <= minuteRemaining then
      ctx.window, ctx.limit, ctx.remaining, ctx.resetMs = "day", key.perDay, dayRemaining, dayResetMs
    else
      ctx.window, ctx.limit, ctx.remaining, ctx.resetMs = "minute", key.perMinute, minuteRemaining, minuteResetMs
    end
    ctx.policy = string.format('"minute";q=%d;w=60, "day";q=%d;w=86400', key.perMinute, key.perDay)
    ctx.state = string.format('"minute";r=%d;t=%d, "day";r=%d;t=%d', minuteRemaining,
      math.ceil((minuteResetMs - nowMs) / 1000), dayRemaining, math.ceil((dayResetMs - nowMs) / 1000))
    ngx.var.window, ngx.var.limit, ngx.var.remaining = ctx.window, ctx.limit, ctx.remaining

    if admitted == 0 then
      local retryAtMs = math.max(ctx.resetMs, bannedUntilMs)
      ngx.header["Retry-After"] = math.ceil((retryAtMs - nowMs) / 1000)
      local code = banned > 0 and "key_banned" or "rate_limited"
      return answerError(429, code, "The rate limit is exceeded; retry after the time in the Retry-After header.")
    end
  end

  function gate.headers()
    local ctx, header = ngx.ctx, ngx.header
    if ctx.limit then
      header["X-RateLimit-Limit"] = string.format("%d", ctx.limit)
      header["X-RateLimit-Remaining"] = string.format("%d", ctx.remaining)
      header["X-RateLimit-Reset"] = string.format("%d", math.ceil(ctx.resetMs / 1000))
      header["RateLimit-Policy"] = ctx.policy
      header["RateLimit"] = ctx.state
    end
    header["X-Request-Id"] = ngx.var.request_id
    header["Access-Control-Expose-Headers"] = exposed
  end

  return gate
end
