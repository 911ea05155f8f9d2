-- `run-wrk.ts` describes the arguments: method, file of secrets, body, expected status, mode, average pause in ms, and number of addresses.
-- An empty body means that requests have no body. Each request uses the next secret. In the mode "check", a callback checks the status of
-- every response, which makes wrk slower. In the mode "measure", wrk itself counts statuses above 399.

local unexpected, example = 0, 0

function init(args)
  local method, secretsFile, body, status, mode = args[1], args[2], args[3], tonumber(args[4]), args[5]

  wrk.method = method
  if body ~= "" then
    wrk.body = body
    wrk.headers["Content-Type"] = "application/json"
  end

  local addresses = tonumber(args[7])
  local requests = {}
  for secret in io.lines(secretsFile) do
    wrk.headers["Authorization"] = "Bearer " .. secret
    if addresses > 0 then
      local address = #requests % addresses
      wrk.headers["X-Forwarded-For"] = "10.0." .. math.floor(address / 256) .. "." .. address % 256
    end
    requests[#requests + 1] = wrk.format()
  end
  if #requests > 1 then
    local at = 0
    function request()
      at = at % #requests + 1
      return requests[at]
    end
  end

  local pauseMs = tonumber(args[6])
  if pauseMs > 0 then
    function delay()
      return math.random(0, 2 * pauseMs)
    end
  end

  if mode == "check" then
    function response(actual)
      if actual ~= status then
        unexpected = unexpected + 1
        example = actual
        wrk.thread:set("unexpected", unexpected)
        wrk.thread:set("example", example)
      end
    end
  end
end

local threads = {}

function setup(thread)
  thread:set("unexpected", 0)
  thread:set("example", 0)
  threads[#threads + 1] = thread
end

function done(summary, latency)
  local errors = summary.errors
  print(string.format(
    '{"requests":%d,"seconds":%.6f,"p50Us":%d,"p99Us":%d,"p999Us":%d,"maxUs":%d,"socketErrors":%d,"timeouts":%d,'
      .. '"above399":%d,"unexpected":%d,"example":%d}',
    summary.requests, summary.duration / 1e6,
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9), latency.max,
    errors.connect + errors.read + errors.write, errors.timeout, errors.status,
    threads[1]:get("unexpected"), threads[1]:get("example")))
end
