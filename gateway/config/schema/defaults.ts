/** The defaults of settings, each with its reason. */
export const defaults = {
  /** One process is the simplest setup and needs no Redis. */
  workers: 1,
  /**
   * The public listener accepts connections on all interfaces, because clients reach the gateway from other hosts. In a
   * container, the container's host decides which ports are published.
   */
  listen: { host: '0.0.0.0', port: 8080 },
  /**
   * The admin listener accepts connections on loopback only, so that the gateway's state stays private until an operator sets
   * another address.
   */
  admin: { host: '127.0.0.1', port: 9090 },
  /** While Redis is down, slightly higher limits are better than an outage of the API. */
  redisOnFailure: 'local',
  /** The client's `Host` is kept, because many backends build links from it and need the API's public name. */
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
  bans: { after: 100, within: '60s', for: '60s', max: '24h' },
  /** The default limit is enough for a person who mistypes a key, and too low for an attacker who guesses keys. */
  addressBucket: { perMinute: 30 },
  /** 1 MiB is far more than a usual JSON request needs. A body of 1 MiB cannot exhaust the memory. */
  bodyBytesMax: 1_048_576,
  /** The usage record keeps figures per minute for eight days: the current day, and the week before it for comparison. */
  usage: { keepDays: 8 },
  /** No proxies. The gateway ignores addresses in `X-Forwarded-For` until an operator names the trusted proxies. */
  trustedProxies: [],
} as const;
