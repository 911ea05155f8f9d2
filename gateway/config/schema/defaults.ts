/** Defaults with their reasons. */
export const defaults = {
  /** One process is the simplest setup and needs no Redis. */
  workers: 1,
  /** Clients reach the gateway from other hosts. In a container, the container's host decides which ports are published. */
  listen: { host: '0.0.0.0', port: 8080 },
  /** The gateway's state stays private until an operator sets another address. */
  admin: { host: '127.0.0.1', port: 9090 },
  /** While Redis is down, slightly higher limits are better than an outage of the API. */
  redisOnFailure: 'local',
  /** Many backends build links from the client's `Host`, and need the API's public name. */
  upstreamHost: 'keep',
  /** Many backends decode `%2F` before they look for the operation, and would then serve another operation. */
  encodedSlashes: 'refuse',
  /**
   * A single failure, or a failure in a thousand requests, is no event. Five failures in a minute that are a hundredth of the
   * requests are more than the usual noise.
   */
  upstreamFailing: { share: '1 %', failures: 5 },
  /**
   * A client that honours Retry-After never gets 100 refusals in a minute. A ban of one minute stops a client that repeats
   * requests in a loop. A ban of one day stops a persistent client.
   */
  bans: { after: 100, within: '60s', for: '60s', max: '24h', showReason: false },
  /** Enough for a person who mistypes a key, and too low for an attacker who guesses keys. */
  addressBucket: { perMinute: 30 },
  /** Far more than a usual JSON request needs, and too little to exhaust the memory. */
  bodyBytesMax: 1_048_576,
  /** The current day, and the week before it for comparison. */
  usage: { keepDays: 8 },
  /** `X-Forwarded-For` is ignored until an operator names the trusted proxies. */
  trustedProxies: [],
} as const;
