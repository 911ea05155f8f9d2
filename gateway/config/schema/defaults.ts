/** The values of settings that a configuration leaves out, each with its reason. */
export const defaults = {
  /** One process is the simplest to look at, and needs no Redis. */
  workers: 1,
  /** Every interface: the gateway is the public entry point, and in a container the outside decides what is published. */
  listen: { host: '0.0.0.0', port: 8080 },
  /** Loopback: nobody else sees the gateway's state until an operator opens it. */
  admin: { host: '127.0.0.1', port: 9090 },
  /** An API that goes on with slightly generous limits beats one that is down because its counter is. */
  redisOnFailure: 'local',
  /** The name that most orchestrators ask for. */
  upstreamHealth: '/healthz',
  /** The client's: many backends build links from it, and need the public name of the API for that. */
  upstreamHost: 'keep',
  /** A client that honours Retry-After never collects 100 refusals in a minute. One minute stops a loop, one day those that go on. */
  bans: { after: 100, within: '60s', for: '60s', max: '24h' },
  /** Enough for a person who mistypes a key, too few to guess one. */
  addressBucket: { perMinute: 30 },
  /** 1 MiB: far above any JSON record of this API, far below what would fill the memory. */
  bodyBytesMax: 1_048_576,
  /** A week to compare with, and the day that is running. */
  usage: { keepDays: 8 },
  /** Nobody: an address in `X-Forwarded-For` is only believed once an operator names the proxies. */
  trustedProxies: [],
} as const;
