/**
 * Every wait, queue, body, header block and retry that has a limit, in one place: the unit stands in the name, the
 * reason beside it. What operators tune (body size, ban ladder, address bucket) is in the configuration instead; its
 * defaults are in `config/schema/defaults.ts`. How large a configuration may be is in `config/config-sizes.ts`.
 */
export const bounds = {
  /** RFC 9112 §3 asks for at least 8,000 octets; longer targets are answered 414. */
  targetBytesMax: 8_192,
  /** Target and header fields together, as Node's parser counts them; beyond it 431. Room above the target's own limit. */
  headersBytesMax: 32_768,
  /** Header fields of one request; Node drops those above its own count silently, so we count ourselves and answer 431. */
  headersCountMax: 100,
  /** From the first byte of a request to the end of its header; slow-header clients are answered 408. */
  headersTimeoutMs: 10_000,
  /** From the first byte of a request to the end of its body. */
  requestTimeoutMs: 60_000,
  /** How often Node looks for connections past those two limits. */
  connectionsCheckingIntervalMs: 1_000,
  /** Idle time of a kept-alive client connection. */
  keepAliveTimeoutMs: 65_000,
  /** What a client is told of that: it must not send into a connection that is just being closed. */
  keepAliveAnnouncedSeconds: 60,
  /** A client that reads nothing of its answer for this long is cut off. */
  writeTimeoutMs: 30_000,
  /** Client connections of this process. */
  connectionsMax: 10_000,
  /** Client connections from one peer address, IPv6 by /64: one client cannot take all of `connectionsMax`. */
  connectionsPerAddressMax: 2_048,
  /** What is still read of a body after an early answer, so that the client can read that answer before we close. */
  lingerBytesMax: 262_144,
  /** How long that may take; under the second that an early answer may keep its connection. */
  lingerTimeoutMs: 750,
  /** Requests that wait on one connection for the answers before them; the last of them is answered `Connection: close`. */
  pipelinedMax: 64,
  /** In a drain an idle connection stays open for this long, so that a request just on its way is served. */
  drainIdleGraceMs: 500,

  /** CORS preflights of one client address in a minute, apart from its requests without a key; beyond it 429. */
  preflightsPerMinuteMax: 600,
  /** How long a browser may remember the answer to one: the longest that Chromium takes is two hours. */
  preflightMaxAgeSeconds: 7_200,

  /** One decision of the store; past it the store counts as away for this request. */
  storeDeadlineMs: 50,
  /** What people ask of the store (to read counts, lift a ban, reset), whole. */
  storePatientDeadlineMs: 1_000,
  /** How often a store that is away is probed. */
  storeProbeIntervalMs: 200,
  /** A store that fails again this soon after it came back has relapsed: quick when it is alone, too slow under load. */
  storeRelapseMs: 10_000,
  /** Probes in a row that must succeed before it counts as back: one, twice as many with every relapse, at most these. */
  storeProbesMax: 32,
  /** The longest pause between two attempts to connect to Redis. */
  storeReconnectMaxMs: 250,
  /** TCP connect to Redis. */
  storeConnectTimeoutMs: 1_000,
  /** A connection that owes replies and says nothing for this long is given up: its peer froze or vanished. */
  storeSilenceMaxMs: 1_000,
  /** A store that is there is asked this often whether it still is, so that `/readyz` is true without traffic. */
  storeHeartbeatIntervalMs: 1_000,
  /** Failed calls in a row after which the store counts as away; a lost connection counts at once. */
  storeFailuresMax: 3,
  /** The first decisions of a process wait this long for the first contact with Redis. */
  storeStartTimeoutMs: 1_000,
  /** Keys whose last seen counts and unsent local use a process remembers. */
  rememberedKeysMax: 100_000,
  /** Client addresses without a valid key that a process counts on its own; the one counted first is forgotten. */
  rememberedAddressesMax: 100_000,
  /** Requests of one key decided by one call. */
  requestsPerCallMax: 1_024,
  /** How long counts seen in the store may refuse without asking it again: a lifted ban shows after that. */
  refusalRememberedMs: 1_000,
  /** A banned key is told the same for this long, on top of that. */
  banRepeatedMs: 100,
  /** Refusals of one key that are reported in one call; at once where they reach the ban's threshold. */
  strikesPerReportMax: 50,
  /** How often what a process decided on its own is reported when no call carried it. */
  reportIntervalMs: 1_000,
  /** Keys of one such report. */
  keysPerReportMax: 500,
  /** The last report at shutdown, whole. */
  storeCloseTimeoutMs: 1_000,

  /** TCP connect to a target. An upstream may set this timeout, the next one and `upstreamTotalTimeoutMs` for itself. */
  connectTimeoutMs: 2_000,
  /** From the sent request to the first byte of the answer. */
  upstreamHeadersTimeoutMs: 30_000,
  /** Between two pieces of an answer's body. */
  upstreamBodyIdleTimeoutMs: 30_000,
  /** The whole exchange with the upstream, retries included. */
  upstreamTotalTimeoutMs: 120_000,
  /** Connections to one target, and therefore requests in flight at it. Shared among keys: see `shares.ts`. */
  connectionsPerTargetMax: 256,
  /** Requests that wait for a connection to one target, shared among keys in the same way; beyond it 503. A key alone has half. */
  queuedPerTargetMax: 4_096,
  /** WebSockets at one target, apart from its requests; beyond it 503. */
  tunnelsPerTargetMax: 4_096,
  /** WebSockets of one key in this process: one key cannot take all of a target's; beyond it 503 by the client's fault. */
  tunnelsPerKeyMax: 256,
  /** A WebSocket in which neither side moved a byte for this long is cut; most clients and servers ping every minute. */
  tunnelIdleTimeoutMs: 600_000,
  /** Header block of a response with the interim responses before it; also all its trailers. */
  upstreamHeadersBytesMax: 65_536,
  /** Fields of one response, and of its trailers. */
  upstreamFieldsCountMax: 256,
  /** Chunk extensions of one response in total; nobody sends any, so they are read only to be skipped. */
  chunkExtensionsBytesMax: 4_096,
  /** Interim responses (1xx) before one response of a target; beyond it 502. */
  interimResponsesMax: 16,
  /** What is read from a target at once: the buffer of a connection. */
  upstreamReadBytesMax: 16_384,
  /** How long a connection to a target stays open unused when the backend does not announce how long it would. */
  upstreamIdleTimeoutMs: 4_000,
  /** The same when it does: half of that, at most this. */
  upstreamIdleTimeoutMaxMs: 60_000,
  /** How often the upstream's name is looked up again. */
  resolveIntervalMs: 2_000,
  /**
   * Between two looks at a target's health path, and how long one look may take. A target that begins to hang is found
   * silent after at most a pause and two looks: 900 ms, so that new requests pass it over within a second.
   */
  healthPauseMs: 200,
  healthTimeoutMs: 350,
  /** Attempts at one request, the first included. */
  attemptsMax: 3,
  /** Full-jitter pause before attempt n: random between 0 and min(cap, base × 2^(n−1)). */
  retryBaseMs: 10,
  retryCapMs: 200,
  /** In each ten seconds retries are at most this share of the requests, and a few more so that a quiet gateway can retry. */
  retryBudgetRatio: 0.2,
  retryBudgetFloor: 10,
  retryBudgetWindowMs: 10_000,
  /** What is read of a body before a connection to a target is taken: all of a small one, so that a slow client holds none. */
  collectedBodyBytesMax: 65_536,
  /** All bodies that are being collected in this process, shared among keys: see `shares.ts`; beyond it 503. */
  collectedBodiesBytesMax: 67_108_864,
  /**
   * The slowest pace at which a client may send a body or read a response while it is waited for. It begins with the
   * grace; each octet buys time at this rate, never more than `clientAheadMaxMs` ahead: a mobile client may lose its
   * network for a moment.
   */
  clientBytesPerSecondMin: 500,
  clientGraceMs: 5_000,
  clientAheadMaxMs: 30_000,
  /**
   * How often exchanges, connections to targets and waits past their limit are looked for; more often, down to the second
   * figure, where the timeouts of an upstream are short.
   */
  sweepIntervalMs: 1_000,
  sweepIntervalMinMs: 20,
  /** How long exchanges may still take when the forwarder is closed. */
  upstreamCloseTimeoutMs: 1_000,

  /** How often the configuration files' content is looked at; the second look that finds an edit confirms it. */
  configPollIntervalMs: 250,
  /** A load that takes longer is logged, and is given up once its files have changed: the newer text may be the repair. */
  configLoadSlowMs: 2_000,
  /**
   * After the thread that loads the configuration died, of memory for example: when it is tried again without an edit.
   * The pause doubles with each failure, up to the second figure, since each try takes a processor for seconds.
   */
  configRetryPauseMs: 10_000,
  configRetryPauseMaxMs: 600_000,
  /** How long the thread that loads the configuration waits for another edit. */
  configThreadIdleMs: 60_000,
  /** Heap of that thread at most: a configuration must not fill the memory of the gateway. The largest keys file takes 1,280. */
  configThreadHeapMebibytes: 1_536,
  /** A file that changed this recently is read again: some file systems give two edits within 2 s one time stamp. */
  configSettledAfterMs: 3_000,
  /** The command line waits this long for another edit of the keys, which takes a second at most; how often it looks. */
  editLockWaitMs: 10_000,
  editLockPollMs: 20,

  /** Log lines are collected up to this many characters before a write: each write is handed to another thread. */
  logLinesLengthMax: 65_536,
  /** The longest a line waits for others, so that a quiet gateway shows its lines too. */
  logFlushIntervalMs: 1_000,
  /** What may wait while nobody reads standard output; beyond it lines are dropped rather than memory filled. */
  logUnreadBytesMax: 16_777_216,
  /** How long the end of the process waits for its last lines. */
  logCloseTimeoutMs: 1_000,

  /** After SIGTERM: how long readiness is down before accepting stops, and how long answers in flight may take. */
  drainGraceMs: 1_000,
  drainDeadlineMs: 25_000,
} as const;

/** The bounds that a part of the gateway is given: those above, or a test's own. */
export type Bounds = { readonly [Name in keyof typeof bounds]: number };
