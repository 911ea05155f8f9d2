import { calendarWindowsMs, type WindowsMs } from './calendar-windows.ts';

/**
 * All waits, queues, sizes and retries, each with its unit in its name. `main.ts`, `server/` and the command line pass them to all other
 * code, so that tests can pass others. Operators set some in the configuration (body size, bans, address bucket; defaults in
 * `config/schema/defaults.ts`). `config/config-sizes.ts` limits the size of a configuration. "Shared among" clients or keys: see
 * `shares.ts`. "At once": a burst after a pause.
 */
export const defaultBounds = Object.freeze({
  /** A longer URI gets 414. RFC 9112 §3 recommends at least 8,000 octets for the request line. */
  targetBytesMax: 8_192,
  /** The URI and the header fields together, as counted by Node's parser. A larger request gets 431. */
  headersBytesMax: 32_768,
  /** More fields get 431. Node would silently drop fields beyond its own maximum. */
  headersCountMax: 100,
  /** From the first octet of a request to the end of its header. A slower request gets 408. */
  headersTimeoutMs: 10_000,
  /** From the first octet of a request to the end of its body. */
  requestTimeoutMs: 60_000,
  /** How often Node checks `headersTimeoutMs` and `requestTimeoutMs`. */
  connectionsCheckingIntervalMs: 1_000,
  /** From the accepted TCP connection to the end of the handshake. A slower client is disconnected. */
  tlsHandshakeTimeoutMs: 10_000,
  /** Failed TLS handshakes are logged at this interval, in one line with their number. */
  tlsFailuresIntervalMs: 10_000,
  /** How often an expiring certificate is logged. A load of the configuration logs it too. */
  certificateNoticeIntervalMs: 86_400_000,
  keepAliveTimeoutMs: 65_000,
  /** Shorter than `keepAliveTimeoutMs`, so that clients do not send into a connection that is about to close. */
  keepAliveAnnouncedSeconds: 60,
  /** How long a client may stop reading its response before it is disconnected. See also `clientReadAheadMaxMs`. */
  writeTimeoutMs: 30_000,
  /**
   * How long a client that has closed its sending side waits for the next octet of its response. Then it counts as gone, because a client
   * that has left looks the same until the gateway sends it an octet. Its request uses an upstream connection meanwhile.
   */
  halfClosedTimeoutMs: 10_000,
  /** The client connections of this process. */
  connectionsMax: 10_000,
  /** From one peer address, so that one client cannot take all of `connectionsMax`. An IPv6 /64 network counts as one address. */
  connectionsPerAddressMax: 2_048,
  /**
   * The octets of a request body that are read after an early response. A close with unread octets would reset the connection, and the
   * client could lose the response.
   */
  lingerBytesMax: 262_144,
  /** How long a request body is read after an early response. The connection is closed within a second of the response. */
  lingerTimeoutMs: 750,
  /** Pipelined requests on one connection. The response to the last has `Connection: close`. */
  pipelinedMax: 64,
  /** How long idle connections stay open during a drain, so that a request that is just arriving is served. */
  drainIdleGraceMs: 500,

  /** The limit of one client address. Further preflights get 429. Requests without a key are counted separately. */
  preflightsPerMinuteMax: 600,
  /** How long a browser may cache the response to a preflight. Chromium accepts at most two hours. */
  preflightMaxAgeSeconds: 7_200,

  /** The limit of one client address. Further requests get 429. A visit to the API reference takes five requests. */
  docsReadsPerMinuteMax: 600,
  /** The unread octets of all responses with the API reference, shared among client addresses. Further requests get 429. */
  docsUnreadBytesMax: 67_108_864,
  /** The assumed reading rate: a response counts as unread for at least the time that a client at this rate needs. */
  docsReadBytesPerSecond: 100_000,
  /** Half a megabyte at 4 KB/s. */
  docsReadTimeoutMs: 120_000,
  /** Reads of a key's limits (`limitsPath`). Further reads get 429. They are not charged to the quota of the key. */
  limitsReadsPerMinuteMax: 60,
  /** The longest period that a holder may read in one request, for rows per minute, per hour and per day. A longer period gets 400. */
  ownUsageMinutesDaysMax: 1,
  ownUsageHoursDaysMax: 7,
  ownUsageDaysMax: 31,
  /**
   * Concurrent reads of the usage record by holders in one process, shared among keys. Further reads get 429, and so does a read that takes
   * longer than `ownReadTimeoutMs`.
   */
  ownReadsMax: 64,
  ownReadTimeoutMs: 10_000,
  /** Reads by holders keep the event loop busy for at most 1/(`ownReadsRestFactor` + 1) of the time. */
  ownReadsRestFactor: 3,
  /** How long a secret stays valid after its holder has rotated it. */
  ownRotationOverlapMs: 86_400_000,
  /**
   * How often holders may rotate a secret of an operator and its descendants. A key keeps the digests of the removed secrets between them,
   * so that a report of each ends its descendants. A thief who could rotate further could make the gateway forget the leaked secret.
   */
  ownRotationsMax: 200,
  /** A link to a holder's page may last at most 30 days. */
  linkMaxMs: 2_592_000_000,
  /** Links of one key that have not ended. */
  linksPerKeyMax: 10,
  /** Concurrent look-ups of links in one process, shared among client addresses. Further requests with a link get 503. */
  linkLookUpsMax: 256,
  /** Deprecated operations for which the gateway looks up the calls of a key. The earliest sunsets take precedence. */
  ownDeprecatedOperationsMax: 100,

  /** The limit of one client address. Further reports get 429. */
  leakReportsPerMinuteMax: 600,
  /**
   * The size of a report, enough for a hundred thousand secrets, and of all reports in memory, shared among client addresses. A larger
   * report gets 413, and a report without room gets 429.
   */
  leakReportBytesMax: 33_554_432,
  leakReportsBytesMax: 100_663_296,
  /** Reports in progress, shared among client addresses. `leakReportsAtOnceMax` reports are processed at the same time. */
  leakReportsMax: 1_024,
  /**
   * How long a body waits for room, and how often it tries again. It takes the room of older bodies that arrive more slowly than
   * `leakBodyBytesPerSecondMin`. A body that stops counts as slow after at most `leakBodyStalledMs`.
   */
  leakRoomWaitMs: 5_000,
  leakRoomTriedMs: 50,
  leakBodyBytesPerSecondMin: 65_536,
  leakBodyStalledMs: 1_000,
  leakReportsAtOnceMax: 2,
  leakEntryBytesMax: 2_097_152,
  /** A report is processed in slices. After each, the process serves requests for `leakRestFactor` times its duration. */
  leakSliceMs: 1,
  leakRestFactor: 3,
  /** Secrets of one report that are looked up in the key directory, or blocked, at the same time. */
  leakLookUpsAtOnce: 16,
  /** The URL, and the other texts that describe where a secret was found. */
  leakUrlCharsMax: 500,
  leakWordCharsMax: 100,
  /** A report to the admin API. */
  leakBodyBytesMax: 1_048_576,
  leakBodyMembersMax: 16_384,
  /**
   * GitHub's list of public keys. It is fetched at most once in `leakKeysFetchedMs`, and again when it is older than `leakKeysKeptMs`. At
   * most `leakIdentifiersMax` unknown identifiers wait for the next fetch.
   */
  leakKeysTimeoutMs: 5_000,
  leakKeysBytesMax: 262_144,
  leakKeysFetchedMs: 60_000,
  leakIdentifiersMax: 1_000,
  leakKeysKeptMs: 86_400_000,
  /**
   * A report that is repeated after this time records the leak again. The time is less than `noticesMergedAfterEndMs`, so receivers get one
   * event.
   */
  leakRecordedAgainMs: 43_200_000,
  leaksRememberedMax: 10_000,
  /** How often a process reads the leaked secrets of the configuration. */
  leaksReadIntervalMs: 1_000,
  /** How long a process that starts waits for Redis to read the leaked secrets. */
  leaksStartTimeoutMs: 1_000,
  /** How long a key stays marked after a leak. Every process reads the leaks more often than this. */
  leakNotedMs: 3_600_000,
  /**
   * How often a gateway notes that its configuration still has a leaked secret. Without such a note for `leakBlockKeptMs`, the secret is no
   * longer blocked.
   */
  leakRenewalMs: 60_000,
  leakBlockKeptMs: 600_000,

  /** The deadline of a store call that decides requests. After it, the store counts as unavailable for these requests. */
  storeDeadlineMs: 50,
  /**
   * A lease contains the number of requests that a process serves for a key with a concurrency limit. The lease of a killed process expires
   * after `leaseMs`.
   */
  leaseMs: 30_000,
  leaseRenewalMs: 10_000,
  /**
   * The pause after a store call whose requests all met the concurrency limit of a key. The next call decides all requests that arrive
   * meanwhile, so a flood costs few calls. The pause ends early when a request of the key ends.
   */
  crowdedPauseMs: 20,
  /** The deadline of a store call for an operator, such as to read counts, lift a ban or reset a quota. */
  storePatientDeadlineMs: 1_000,
  /** How often an unavailable store is probed. */
  storeProbeIntervalMs: 200,
  /** A store that fails again this soon after its recovery has relapsed: it is fast when idle, and too slow under load. */
  storeRelapseMs: 10_000,
  /** A store is available again after some successful probes in a row: first one, doubled by each relapse up to this number. */
  storeProbesMax: 32,
  /** While a store is away, each new reason is logged. A known reason is logged again after this time. */
  storeReasonRepeatMs: 60_000,
  storeReasonsMax: 16,
  /** The longest pause between two attempts to connect. */
  storeReconnectMaxMs: 250,
  /** For reading the slots of a Cluster from one server over a new connection. After it, the next server is asked. */
  storeSlotsTimeoutMs: 250,
  storeConnectTimeoutMs: 1_000,
  /**
   * The longest time without an octet while replies are outstanding. Then the connection is closed, because its server hangs or cannot be
   * reached.
   */
  storeSilenceMaxMs: 1_000,
  /** A command that the ACL has refused is tried again at this interval. */
  storeAclRetryMs: 10_000,
  /** How often an available store is checked, so that `/readyz` is up to date without traffic. */
  storeHeartbeatIntervalMs: 1_000,
  /** Failed calls in a row after which the store counts as unavailable. After a lost connection it is unavailable immediately. */
  storeFailuresMax: 3,
  /** How long the first decisions of a process wait for the first connection to Redis. */
  storeStartTimeoutMs: 1_000,
  /** Keys for which a process remembers that it has warned about unusable data in Redis. */
  warnedKeysMax: 1_000,
  /** Keys for which a process caches the last counts and the unsent local decisions. */
  rememberedKeysMax: 100_000,
  /** Client addresses for which a process counts requests without a valid key. The oldest is evicted first. */
  rememberedAddressesMax: 100_000,
  /** Requests of one key in one call to the store. */
  requestsPerCallMax: 1_024,
  /** Keys in one call to the store, if one Redis server stores all keys. The server blocks during the call. */
  keysPerCallMax: 32,
  /** How long a process may refuse requests by cached counts, without a call to the store. */
  refusalRememberedMs: 1_000,
  /**
   * How long a process repeats its last decision on a banned key. The lifting of a ban takes effect after at most `refusalRememberedMs`
   * plus this time.
   */
  banRepeatedMs: 100,
  /** Bans whose end a process will log, and how often it checks for expired bans. */
  loggedBansMax: 10_000,
  banEndIntervalMs: 1_000,
  /**
   * Reported thresholds that a process remembers. It forgets the oldest first, and may report it again. It also repeats a report that is
   * not confirmed within `thresholdRepeatMs`. A repeated report leads to no second event.
   */
  reportedThresholdsMax: 20_000,
  thresholdRepeatMs: 60_000,
  /**
   * Refusals without a call to the store are reported later. A report has at most `strikesPerReportMax` refusals of one key. At most the
   * share `strikesHeldShareMax` of the refusals that remain until the ban may wait. If fewer than a hundred remain, each is reported
   * immediately. A key is therefore banned at its threshold even if several processes refuse its requests.
   */
  strikesPerReportMax: 50,
  strikesHeldShareMax: 0.01,
  /** How often a process reports the local decisions that it has not yet sent to the store. */
  reportIntervalMs: 1_000,
  /** Keys in one report of local decisions. */
  keysPerReportMax: 500,
  /** For the last report of local decisions at shutdown. */
  storeCloseTimeoutMs: 1_000,

  /**
   * How often a process reports the counts of a guarded plan and reads the state of its guard. Unsent counts wait in slots of
   * `guardSlotMs`.
   */
  guardIntervalMs: 1_000,
  /** A guard judges the last `guardSlots` slots: ten minutes, and at least `guardRequestsMin` requests. */
  guardSlotMs: 10_000,
  guardSlots: 60,
  guardRequestsMin: 100,
  /** Keys whose counts a slot lists separately. With more keys, it counts groups of keys (`guard-counts.ts`). */
  guardKeysPerSlotMax: 64,
  /** How long Redis keeps the state after the last gateway with this guard in its configuration has read it: 30 days. */
  guardKeptMs: 2_592_000_000,
  /**
   * A revert needs refusals of half of the keys of the plan that were active within `guardActiveMs`, and at most of five keys. Redis
   * therefore has at most `guardActiveKeysMax` active keys of each plan. A process notes an active key again after `guardActiveRenewMs`.
   */
  guardActiveMs: 86_400_000,
  guardActiveKeysMax: 10,
  guardActiveRenewMs: 600_000,
  /** How long a process that starts waits for the state of the guards. */
  guardStartTimeoutMs: 1_000,

  /** A rotation needs two secrets. The limit is higher, because a careless integration may use more. */
  directorySecretsPerKeyMax: 16,
  /**
   * How long a process uses a cached key without a decision by Redis about it. Each decision by Redis reveals a change of the key, so
   * requests that Redis decides have no such limit.
   */
  directoryCachedMs: 60_000,
  /**
   * How long Redis keeps the generation of a key after a process has read the key: 7 days. Afterwards the processes that have cached the
   * key read it again.
   */
  directoryGenerationKeptMs: 604_800_000,
  /**
   * Keys that a process caches as objects, and the octets that they may take: mostly about 640 each, 100,000 with many operations. The
   * least recently used key is packed.
   */
  directoryCachedKeysMax: 50_000,
  directoryCachedBytesMax: 33_554_432,
  /**
   * Octets of packed keys, mostly about 130 each. A process takes this memory only when it needs it. The least recently used keys are
   * evicted, and their next requests read them again.
   */
  directoryPackedBytesMax: 167_772_160,
  /** Cached secrets, about 930 octets each. A full cache is cleared, and digests are computed again. */
  directoryCachedSecretsMax: 50_000,
  /**
   * Cache entries for secrets without a usable key. While Redis is unavailable, the expired entry of a key is extended by the same
   * lifetime.
   */
  directoryAbsentMs: 1_000,
  directoryAbsentMax: 10_000,
  /** Look-ups in flight, and look-ups in flight or waiting, shared among client addresses. Further requests get 503. */
  directoryLookUpsMax: 128,
  directoryLookUpsWaitingMax: 4_096,
  /** The minimum time between two batches of look-ups. Look-ups that arrive in between wait for the next batch. */
  directoryLookUpRoundMs: 4,
  /** How often the gateway reads the key of a request again if the key changes during the decision. */
  directoryRereadsMax: 3,
  /** Recently changed keys that a process remembers, so that a look-up that began before a change does not cache the old key. */
  directoryKnownChangesMax: 10_000,
  /**
   * The record of a new key must be written within `directoryCreatedWithinMs` after its id was added to the list of ids. A listed id
   * without a record counts as left over after `directoryLeftoverMs`, which is longer because the clocks of a Cluster's servers may differ.
   */
  directoryCreatedWithinMs: 60_000,
  directoryLeftoverMs: 600_000,
  /** Possibly left-over ids and digests that a process checks at the same time. */
  directoryTidiedAtOnceMax: 16,
  /** The deadline of a look-up. After it, the store counts as unavailable for this request. */
  directoryLookUpDeadlineMs: 250,
  /**
   * How often a process reads whether Tollgate issued every secret of the directory, and how long it relies on the reply. An import of
   * digests waits for `directoryMarkWaitMs`, which is longer than the lease, at most `directoryMarkWaitsMax` times. Processes read only
   * while clients send secrets with wrong checksums.
   */
  directoryMarkReadMs: 300,
  directoryMarkLeaseMs: 1_000,
  directoryMarkWaitMs: 1_500,
  directoryMarkWaitsMax: 3,

  /** A TCP connect to a target, including any TLS handshake. An upstream may set its own connect, header and total timeout. */
  connectTimeoutMs: 2_000,
  /** From the sent request to the first octet of the response. */
  upstreamHeadersTimeoutMs: 30_000,
  /** Between two chunks of a response body. */
  upstreamBodyIdleTimeoutMs: 30_000,
  /** The whole exchange, including retries. */
  upstreamTotalTimeoutMs: 120_000,
  /** Shared among keys. A connection carries at most one request at a time. */
  connectionsPerTargetMax: 256,
  /**
   * Requests that wait for a connection to one target, shared among keys. Further requests get 503. A single key gets at most half of the
   * places.
   */
  queuedPerTargetMax: 4_096,
  /** WebSockets to one target, shared among keys. A further WebSocket gets 503. */
  tunnelsPerTargetMax: 4_096,
  /** WebSockets of one key in this process. A further WebSocket gets 503, and the access line names the client as the side at fault. */
  tunnelsPerKeyMax: 256,
  /** Octets that all WebSockets of this process relay in one turn of the event loop, in both directions. Keys take turns. */
  tunnelBytesPerTurnMax: 65_536,
  /** The longest time without traffic in either direction. Most clients and servers ping every minute. */
  tunnelIdleTimeoutMs: 600_000,
  /** How often the cached keys of open WebSockets are checked. A reload also checks them. */
  tunnelCheckIntervalMs: 1_000,
  /**
   * How often the keys of open WebSockets are read again from the key directory, and how many at the same time. A thousand reads take 0.1
   * to 0.3 s.
   */
  tunnelReadIntervalMs: 5_000,
  tunnelsReadAtOnce: 16,
  /** The checks of one turn of the event loop take at most a millisecond. */
  tunnelsCheckedPerTurn: 256,
  /** A response's header block and its interim responses together. The same limit applies to the trailers. */
  upstreamHeadersBytesMax: 65_536,
  /** The same limit applies to the trailer fields. */
  upstreamFieldsCountMax: 256,
  /** All chunk extensions of one response. The gateway skips them, and backends normally do not send any. */
  chunkExtensionsBytesMax: 4_096,
  /** Interim responses (1xx) before one response. More give 502. */
  interimResponsesMax: 16,
  /** The read buffer of a connection to a target. */
  upstreamReadBytesMax: 16_384,
  /** The idle time of a connection to a target if the backend announces none. */
  upstreamIdleTimeoutMs: 4_000,
  /** The gateway uses half of the idle time that the backend announces, up to this limit. */
  upstreamIdleTimeoutMaxMs: 60_000,
  /** How often the upstream's host name is looked up. */
  resolveIntervalMs: 2_000,
  /** A hanging target is detected after one pause and two checks (900 ms), so new requests avoid it within a second. */
  healthPauseMs: 200,
  healthTimeoutMs: 350,
  /**
   * If N processes check the same target, each checks a healthy target every `healthFleetPauseMs` × N on average, or every
   * `healthOwnPauseMaxMs` if this is shorter. The pause is at least `healthTurnMs` × N. A process repeats a failed check of a healthy
   * target once, so a target gets at most 100 checks a second.
   */
  healthFleetPauseMs: 100,
  healthOwnPauseMaxMs: 10_000,
  healthTurnMs: 20,
  /**
   * The deadline of a call to Redis about health checks. After it, the process checks its targets alone. Until then, a process of a large
   * fleet may wait for its turn, so the deadline is short.
   */
  healthExchangeDeadlineMs: 350,
  /** The periods in which processes count who checks a target, and the targets in one call. */
  healthCheckersPeriodMs: 10_000,
  healthCheckersAtOnce: 250,
  /** Processes that must agree before a target counts as failing, or as healthy again, for the whole fleet. */
  healthReportersMin: 3,
  /** Failing targets in Redis, and how long Redis keeps one after the last report. */
  healthFailingMax: 1_000,
  healthFailingKeptMs: 30_000,
  healthReasonCharsMax: 200,
  /** Attempts of one request, including the first. */
  attemptsMax: 3,
  /** The pause before attempt n is random (full jitter): between 0 and min(cap, base × 2^(n−1)). */
  retryBaseMs: 10,
  retryCapMs: 200,
  /**
   * The share of requests that may be retried in each window. `retryBudgetFloor` allows a few more, so that a gateway with few requests can
   * retry.
   */
  retryBudgetRatio: 0.2,
  retryBudgetFloor: 10,
  retryBudgetWindowMs: 10_000,
  /**
   * Octets of a request body that the gateway reads before the request takes a connection to a target. A slow client with a small body
   * therefore occupies no connection.
   */
  collectedBodyBytesMax: 65_536,
  /** All collected request bodies of this process, shared among keys. Further requests get 503. */
  collectedBodiesBytesMax: 67_108_864,
  /**
   * The slowest rate at which a client may send a body or read a response. The first deadline is `clientGraceMs` after the start. Each
   * octet extends it by the octet's time at this rate, to at most `clientAheadMaxMs` in the future. A fast client therefore stays connected
   * if it loses its network for a moment.
   */
  clientBytesPerSecondMin: 500,
  clientGraceMs: 5_000,
  clientAheadMaxMs: 30_000,
  /**
   * The largest extension of the deadline of a client that reads. The gateway sees only the octets that the kernel accepts, and the kernel
   * accepts more only when a third of its buffer is free. This third is up to 1.4 MB with Linux's default of 4 MiB, so a client that reads
   * 20 kB/s may seem to stop for 70 s.
   */
  clientReadAheadMaxMs: 120_000,
  /**
   * How often exchanges, connections to targets and waiting requests are checked for timeouts. Short timeouts of an upstream shorten the
   * interval, down to `sweepIntervalMinMs`.
   */
  sweepIntervalMs: 1_000,
  sweepIntervalMinMs: 20,
  /** How long exchanges may continue after the forwarder is closed. */
  upstreamCloseTimeoutMs: 1_000,

  /** Shared among client addresses. */
  adminConnectionsMax: 512,
  /**
   * Admin connections that may begin. Further ones wait, and the gateway reads nothing from them. Client addresses take turns. A TLS
   * handshake takes 0.2 to 1 ms.
   */
  adminConnectionsPerSecondMax: 250,
  adminConnectionsAtOnceMax: 16,
  /** Waiting connections in whose first packet the admin listener looks for a token. A look takes 30 µs. */
  adminLooksPerSecondMax: 6_000,
  adminLooksAtOnceMax: 512,
  /** Waiting requests of one connection. One more closes the connection. Browsers and curl send one request at a time. */
  adminPipelinedMax: 4,
  /**
   * In each turn, the listener begins one request (40 to 75 µs), or parses octets of one connection (up to 100 µs). Client addresses take
   * turns. A page for operators loads 35 files at the same time.
   */
  adminTurnsPerSecondMax: 1_000,
  adminTurnsAtOnceMax: 16,
  /** In each turn, the parser reads slices until the turn has taken `adminParsingMs`. A slice of one-octet chunks takes 0.06 ms. */
  adminSliceBytes: 512,
  adminParsingMs: 0.05,
  /** How long the text of `/metrics` is cached. */
  metricsKeptMs: 1_000,
  /** The URI and the header fields together, and the URI alone. */
  adminHeadersBytesMax: 16_384,
  adminTargetBytesMax: 2_048,
  /** Requests in flight, shared among tokens. Further requests get 503. */
  adminRequestsMax: 64,
  /** After it, an admin request gets 503. Each part of the request has a shorter deadline. */
  adminResponseTimeoutMs: 10_000,
  /** A JSON body of the maximum size can define a key with two thousand operations. A larger body gets 413, and a slower body gets 408. */
  adminBodyBytesMax: 65_536,
  adminBodyMembersMax: 4_096,
  adminBodyTimeoutMs: 5_000,
  /**
   * Tokens with a request in progress, on the serving thread and on the reading thread. Each thread serves at most one request of a token
   * at a time.
   */
  adminTurnsMax: 16,
  readingTurnsMax: 4,
  /** How long the idle reading thread is kept, its heap, and the part of the heap for young objects. */
  readingThreadIdleMs: 60_000,
  readingThreadHeapMebibytes: 512,
  readingThreadYoungMebibytes: 16,
  /**
   * While Redis is away: the pause between two attempts of the reading thread, and the size of its memory of the last answers, in numbers
   * of usage records (8 octets each) and in keys of the directory.
   */
  readingAwayRetryMs: 1_000,
  readingRememberedNumbersMax: 500_000,
  readingRememberedKeysMax: 2_000,
  /** The reading thread is replaced when one request takes longer than this. */
  readingStuckMs: 30_000,
  /** A query that the reading thread sends to the serving thread. */
  readingCallTimeoutMs: 2_000,
  /** How long a response that depends only on the settings is cached. */
  readingFixedKeptMs: 60_000,
  /** Records of a large query that the serving thread returns in one turn of its event loop. */
  readingAskedAtOnceMax: 50,
  /**
   * After each part of a large query, the serving thread serves requests for `readingPauseFactor` times the duration of the part, but at
   * most for `readingPauseMaxMs`.
   */
  readingPauseFactor: 4,
  readingPauseMaxMs: 20,
  /**
   * A larger admin response is written in pieces. A pause follows each, so that API requests are served in between. Each token has at most
   * one large response in progress.
   */
  adminLargeResponseBytes: 262_144,
  adminPieceBytes: 131_072,
  adminPiecePauseMs: 1,
  /**
   * A token pauses after each request. The pauses are longer if the token would otherwise keep the event loop of the serving thread busy
   * for more than 1/`adminRestFactor` of the time. It may postpone these longer pauses by up to `adminAheadMaxMs`.
   */
  adminTurnPauseMs: 2,
  adminRestFactor: 3,
  adminAheadMaxMs: 250,
  /** Changes by one token on each process, enough for a command that changes 10,000 keys; further changes get 429. Tokens whose changes are counted. */
  adminChangesPerMinuteMax: 15_000,
  adminTokensCountedMax: 1_000,
  /** Attempts to change a key while other clients change it. After the last, the change gets 409. */
  directoryChangeAttemptsMax: 10,
  /** A day. */
  idempotencyKeptMs: 86_400_000,
  /** The keys of one import, its body, and the keys that are written at the same time. */
  importKeysMax: 500,
  importBytesMax: 524_288,
  importMembersMax: 32_768,
  importKeysAtOnceMax: 25,
  /** Old secrets that are still in use: how many are listed, and how long the list is cached. */
  oldSecretsMax: 1_000,
  oldSecretsKeptMs: 30_000,
  /** Keys that a command changes through the admin API at the same time, and between two writes of the file with their new secrets. */
  manyKeysAtOnce: 8,
  manyKeysPerPart: 200,
  /** A command repeats a change up to so many times, with waits from this one on, or as long as the gateway says, but no longer than the second. After so many keys in a row without an answer, it stops. */
  manyAttemptsMax: 5,
  manyRetryMs: 500,
  manyRetryMaxMs: 65_000,
  manyFailuresMax: 10,
  /** A grant and a ban by hand may end at most 400 days from now. */
  grantMaxMs: 34_560_000_000,
  /** Wrong tokens per client address that get 401. Further wrong tokens get 429. */
  adminWrongTokensPerMinuteMax: 10,
  /** Client addresses whose wrong tokens are counted. The oldest is evicted first. */
  adminGuessersMax: 10_000,
  /** Wrong tokens are logged at this interval, in one line with their number. */
  adminWrongTokensIntervalMs: 10_000,
  /** Keys that one list request with a state filter examines before it returns a partial result with a cursor. */
  adminKeysExaminedMax: 10_000,
  /** Rows in one response with the usage of a key: 8 days of minutes. */
  adminUsageRowsMax: 11_520,

  /** The usage distribution of a plan, or the decisions of its trial, which take a read of the usage record of every active key. */
  planDistributionTimeoutMs: 5_000,
  planDistributionKeptMs: 30_000,
  /**
   * A part of a simulation reads and replays its keys one after another. The body allows 10,000 keys with edits of all windows. A cached
   * minute takes 28 octets.
   */
  simulationTimeoutMs: 2_000,
  simulationBytesMax: 1_048_576,
  simulationMembersMax: 65_536,
  simulationMinutesKeptMax: 2_000_000,
  simulationKeptMs: 60_000,
  /** A simulation with edits of more plans proposes no guards. Each plan with requests takes 20 KiB for each simulated day. */
  simulationGuardsMax: 100,

  /** The shown credits of a key, and the hours with failed units in one call to the store, counted for each upstream and bucket. */
  creditsShownMax: 5,
  creditHoursPerCallMax: 48,
  /**
   * A run that gives back failed units works at most `makegoodPartMs` for one part. Then the token pauses (`adminRestFactor`). It reads and
   * credits `makegoodKeysAtOnce` keys at the same time, and then pauses for `makegoodPauseMs`. If the gateway is busy or Redis is away, the
   * command requests a part again, at most `makegoodRetries` times.
   */
  makegoodPartMs: 500,
  makegoodKeysAtOnce: 25,
  makegoodPauseMs: 1,
  makegoodRetries: 20,
  makegoodRetryMs: 1_000,
  /** The named keys that a run could not read, and the time without a next part after which a run counts as ended. */
  makegoodKeysNamedMax: 20,
  makegoodIdleMs: 60_000,

  /** How often a process reads the store's clock while its configuration has scheduled changes of plans. */
  planClockReadIntervalMs: 10_000,

  /**
   * The interval at which the counts of busy keys are flushed, and the slices into which a flush divides the keys. After a pause of the
   * process, `usageSlicesAtOnceMax` late slices are flushed in one turn of the event loop.
   */
  usageFlushIntervalMs: 10_000,
  usageSlicesPerFlush: 100,
  usageSlicesAtOnceMax: 10,
  /**
   * A key with fewer unsent requests is quiet. Its counts are sent by the sixth flush after a request, so after at most 60 s and the delay
   * of the event loop.
   */
  usageQuietRequestsMax: 20,
  usageQuietRounds: 6,
  /** After the deadline of a call, its batch is sent again as soon as the store replies. No batch is counted twice. */
  usageCallTimeoutMs: 1_000,
  /** A call with all fields keeps Redis busy for 3 ms, and a call with all records for 1 ms. */
  usageFieldsPerCallMax: 250,
  usageRecordsPerCallMax: 16,
  /** Unsent counts of all keys, about 60 octets each. Further counts are not recorded. */
  usageUnsentCountsMax: 500_000,
  /** Operations that a process records separately, per key and day. Further operations are counted together. */
  usageOperationsPerKeyMax: 100,
  /** Secrets whose last use a process records, per key and day. */
  usageSecretsPerKeyMax: 8,
  /** Client networks that a process records separately for refused requests, per key and day. Further networks are counted together. */
  usageNetworksPerKeyMax: 8,
  /**
   * Secrets that are not valid but were used, which a process records separately for each day. Further secrets are counted together. A secret
   * takes 30 to 2,000 octets.
   */
  usageDeadSecretsMax: 100,
  /** Upstreams whose failed units a process records separately, per key and day. Further upstreams are counted together. */
  usageUpstreamsPerKeyMax: 8,
  /** Trials that a process records, per key and day. The decisions of further edits of the trial are not recorded. */
  usageTrialsPerKeyMax: 50,
  /** Groups of operations that a process records, per key and day. */
  usageGroupsPerKeyMax: 40,
  /** Flushes without a request of the key after which a process evicts its counts. */
  usageIdleRoundsMax: 30,
  /**
   * Keys whose counts stay in memory, about 3 kB each. With more keys, a key is evicted as soon as its counts are sent, and all counts are
   * sent whenever `usageKeysMax` new keys have arrived. The memory therefore contains at most 3 × `usageKeysMax` keys.
   */
  usageKeysMax: 20_000,
  /**
   * The index of recently active keys, and how often a process updates the entry of an active key. A process writes at most
   * `usageActiveKeysMax` entries in this time, because the index has room for no more.
   */
  usageActiveKeysMax: 10_000,
  usageActiveNotedMs: 60_000,
  /** Recently active keys whose usage of the last 24 hours is in memory if no Redis is configured. */
  usageKeysInMemoryMax: 1_000,
  /**
   * The days for which Redis keeps the figures of all requests together, also if `usage.keepDays` is smaller: two weeks can be compared. A day
   * takes up to 0.4 MB.
   */
  usageOfAllDaysMin: 15,
  /** Sent counts that a process keeps for operators while Redis is away, with the minutes of the last hours. */
  usageRememberedKeysMax: 500,
  usageRememberedHours: 6,
  /** The memory of Redis is checked at this interval. Above this share of its `maxmemory`, usage is not recorded. */
  usageMemoryCheckIntervalMs: 10_000,
  usageMemoryShareMax: 0.7,
  /** A process adds the usage of past days to the total of each key, with this pause between two keys. */
  usageTotalsPauseMs: 20,
  usageTotalsWaitingMax: 100_000,
  /** Records that are read or written at the same time. Further ones wait, so that Redis serves other clients in between. */
  usageReadsPerTurnMax: 250,
  /** How long the process waits for its last batches before it exits. */
  usageCloseTimeoutMs: 2_000,

  /** How often a process publishes its state, and how long a stopped process remains listed. */
  presenceIntervalMs: 1_000,
  presenceExpiryMs: 5_000,
  /**
   * The listed processes, about a kilobyte each, and the listed targets of one upstream. With more than `presenceDetailedMax` processes, a
   * reader omits the healthy targets of the others. A reader reads `presenceReadAtOnce` states in one turn of the event loop.
   */
  presenceProcessesMax: 2_000,
  presenceTargetsMax: 64,
  presenceDetailedMax: 500,
  presenceReadAtOnce: 50,
  /**
   * How long a flush waits until every process has sent its counts, and how often it reads the list of processes meanwhile. A process sends
   * `fleetFlushRecordsAtOnce` usage records at the same time for a flush.
   */
  fleetFlushTimeoutMs: 5_000,
  fleetFlushPollMs: 200,
  fleetFlushRecordsAtOnce: 64,
  /**
   * During a flush, a process pauses after each part of its records for this multiple of the part's time. The simultaneous calls of a large
   * fleet then delay decisions by only a few milliseconds.
   */
  fleetFlushRestFactor: 1,
  /**
   * Commands and pages use an earlier flush that began less than this time ago. However often operators read, the usage record costs no
   * more than one flush of all keys by every process in this time.
   */
  fleetFlushReusedMs: 10_000,
  /** The period of a process's rates and percentiles. */
  recentFiguresMs: 10_000,
  /**
   * Failed requests are counted over `failuresShownMs`. Requests that failed in the gateway are reported if their number is at least
   * `failingRequestsMin` and their share of all requests is at least `failingShareMin`. The setting `upstream.failing` has the bounds of
   * an upstream.
   */
  failuresShownMs: 60_000,
  failingRequestsMin: 5,
  failingShareMin: 0.01,
  /**
   * The longest time for which an upstream that fails again and again must be well before its outage ends. An upstream therefore has at most
   * about ten events an hour. The second bound is how often a gateway reads whether the outage goes on at another gateway. It is shorter than `eventsMergedWithinMs`, so
   * that the reports of all gateways about the end are one event.
   */
  failingHoldMaxMs: 900_000,
  failingElsewhereReadMs: 5_000,
  /** A change is kept for 90 days. */
  changesMax: 20_000,
  changesKeptMs: 7_776_000_000,
  /** Reports of the same change by several processes within this time are merged. */
  changesMergedWithinMs: 60_000,
  /** The recorded reason for a failed reload. */
  changeErrorCharsMax: 1_000,
  /** A changed member in the record of changes, as JSON, and the changed members that a command reports for one change. */
  changeMemberCharsMax: 200,
  changeMembersMax: 12,
  /** The texts that describe one reload, the keys that they name, and the keys by whose ids the reload is found. */
  editTextsMax: 20,
  editTextCharsMax: 200,
  editedKeysNamedMax: 5,
  editedKeysFoundMax: 200,
  changesPerPageMax: 200,
  /** Recent changes in which the gateway searches for earlier limits of a key. */
  limitChangesReadMax: 2_000,
  /** Processes that are counted as reporters of one change or event. */
  listReportsMax: 500,
  /** An event is kept for 7 days. */
  eventsMax: 2_000,
  eventsKeptMs: 604_800_000,
  /** Reports of the same event by several processes within this time are merged. */
  eventsMergedWithinMs: 10_000,
  /** How often each process reads the figures of the queue of webhooks, for metrics and faults. */
  webhookCountsIntervalMs: 10_000,
  /** Deliveries that have failed for this time, and dropped events of this time, are shown as a fault. */
  webhookFailingNoticeMs: 300_000,
  webhookDroppedNoticeMs: 3_600_000,
  webhookBodyBytesMax: 20_000,
  /** A text in the body of a webhook, such as a URL or an error message. */
  webhookTextCharsMax: 1_000,
  /** A list in the body of a webhook. */
  webhookListMax: 500,
  /**
   * Reports of several processes become one event until this time after the end of the ban or window. A process whose Redis is away reports
   * late.
   */
  noticesMergedAfterEndMs: 86_400_000,
  /** How long reports of a threshold are merged after the counts of the key contain the report. */
  thresholdMergedMs: 600_000,
  /**
   * A scan looks for events that become due with the time, such as the expiry of a secret. The pause between two scans is
   * `noticeScanPauseFactor` times the length of the scan, within the two intervals.
   */
  noticeScanIntervalMs: 60_000,
  noticeScanIntervalMaxMs: 3_600_000,
  noticeScanPauseFactor: 50,
  /** A scan reads this number of keys in a millisecond of CPU time, and then pauses. */
  noticeScanKeysAtOnce: 50,
  noticeScanPauseMs: 20,
  /**
   * The events, and the time, after which a scan checks that the process may still scan and that the queue of deliveries has room. While
   * more than `noticeScanWaitingMax` deliveries wait, the scan pauses, so that it does not displace other events.
   */
  noticeScanEventsAtOnce: 50,
  noticeScanCheckMs: 1_000,
  noticeScanWaitingMax: 2_000,
  noticeScanFullPauseMs: 2_000,
  /** The time after which another process takes over the scans of a dead process, after the end of a pause between two scans. */
  noticeScanLeadMs: 30_000,
  /** How long Redis keeps the end of the last scan: 400 days. */
  noticeScanKeptMs: 34_560_000_000,
  eventsPerPageMax: 200,
  /** How often a gateway checks that Redis has kept its data, and how long it tells operators of a loss. */
  dataMarkIntervalMs: 5_000,
  dataLostShownMs: 3_600_000,
  /** In one response of the admin API. */
  webhooksPerPageMax: 200,
  /** The events that were read last. The admin API shows them while Redis does not reply. */
  webhooksRememberedMax: 1_000,
  /**
   * The list of deliveries also needs the events with a waiting or failed delivery. They are cached for this multiple of the time that the
   * read has taken. A full queue of 10,000 events takes 0.4 s and 0.2 s of CPU time.
   */
  webhookProblemsRestFactor: 20,
  /**
   * Events of one kind that a process reports in one burst, and how often it reports a further event. Excess events are reported as one
   * event with their number, after a pause that doubles while the excess continues.
   */
  eventsAtOnceMax: 20,
  eventsRefillMs: 4_000,
  eventsSummaryPauseMs: 1_000,
  eventsSummaryPauseMaxMs: 60_000,

  /** The events in the queue of deliveries, which are kept for 30 days. A process keeps the same number while Redis is away. */
  webhooksMax: 10_000,
  webhooksKeptMs: 2_592_000_000,
  /** How long the queue merges late reports about an event whose identity may occur again: a day. */
  webhookIdentityKeptMs: 86_400_000,
  /** From the start of an attempt to the end of the response head. Standard Webhooks recommends 15 to 30 s. */
  webhookTimeoutMs: 15_000,
  /**
   * A receiver's host with a slower lookup is slow, and so many slow hosts are remembered. They are looked up one after the other, because
   * all lookups of a process share two threads.
   */
  slowLookupMs: 1_000,
  slowHostsMax: 100,
  /**
   * How long a process may work on a delivery that it has claimed. Then any process may claim it again. The claim is longer than an
   * attempt, and is short enough for another process to take over within 30 s.
   */
  webhookClaimMs: 22_000,
  /**
   * How long a process remains the only sender to a receiver after its last claim, and how often other processes check for a receiver
   * without a sender.
   */
  webhookSenderMs: 10_000,
  webhookSenderCheckMs: 5_000,
  /** How often a sender checks for due deliveries. */
  webhookPollMs: 1_000,
  /** Concurrent attempts to one receiver. A receiver that hangs therefore takes no attempts from others. */
  webhooksPerReceiverMax: 4,
  /**
   * Attempts that a process starts. An attempt takes 1 ms of CPU time, so a flood of events does not delay requests. Receivers take turns.
   */
  webhooksPerSecondMax: 100,
  webhooksAtOnceMax: 4,
  /** The shortest pause between two claims of deliveries. */
  webhookClaimPauseMs: 20,
  /** The head of a response, and the part of its body that is read. */
  webhookResponseHeadBytesMax: 16_384,
  webhookResponseBodyBytesMax: 16_384,
  /** How long the body of a response is read. The attempt ends earlier, with the head. */
  webhookLingerTimeoutMs: 1_000,
  /**
   * The longest pause before the first retry. Each further pause is longer by the factor. A random part of at most a quarter is subtracted.
   * The retries end three days after the first attempt.
   */
  webhookRetryMs: 3_500,
  webhookRetryFactor: 4,
  webhookRetryPauseMaxMs: 21_600_000,
  webhookRetriesMs: 259_200_000,
  /** The longest pause that a receiver may request with `Retry-After`. */
  webhookRetryAfterMaxMs: 3_600_000,
  /**
   * After so many failed attempts (about six minutes), a delivery no longer delays later deliveries of the same subject to the same
   * receiver.
   */
  webhookOrderedAttemptsMax: 5,
  /**
   * Waiting deliveries to a receiver fail after no process has had it in its configuration for `webhookReceiverGoneMs`. Each process
   * reports its receivers to Redis at the interval `webhookReceiversNoteMs`.
   */
  webhookReceiverGoneMs: 3_600_000,
  webhookReceiversNoteMs: 60_000,
  webhooksEndedAtOnceMax: 100,
  /** The recorded reason for a failed attempt. */
  webhookErrorCharsMax: 200,
  /** Between two warnings in the log about one receiver. */
  webhookLogPauseMs: 60_000,
  /** Events that one call reads for a list of deliveries. With 20 receivers, such a read takes 3 ms. */
  webhooksReadAtOnceMax: 50,
  /** How long a process waits for its attempts in progress before it exits. */
  webhooksCloseTimeoutMs: 2_000,

  /**
   * The spans of a process that wait for the collector. Further spans are dropped. All workers together have `otelQueuedBytesMax`. A span
   * has 0.9 kB on average, and at most 8 kB.
   */
  otelQueuedSpansMax: 20_000,
  otelQueuedBytesMax: 16_777_216,
  /** Spans are sent together, after this time or when a batch is full. A collector accepts 20 MiB by default. */
  otelBatchMs: 2_000,
  otelBatchSpansMax: 2_000,
  otelBatchBytesMax: 1_048_576,
  /** How often metrics are sent. */
  otelMetricsIntervalMs: 60_000,
  /** From the start of a POST to the end of its response: the default of OpenTelemetry. */
  otelTimeoutMs: 10_000,
  /** The head of a response, and the part of its body that is read. */
  otelResponseHeadBytesMax: 16_384,
  otelResponseBodyBytesMax: 65_536,
  /** The pause before the first retry of a batch doubles up to the longest pause. Then the batch is dropped after `otelRetriesMs`. */
  otelRetryMs: 1_000,
  otelRetryPauseMaxMs: 30_000,
  otelRetriesMs: 300_000,
  /** The longest pause that a collector may request with `Retry-After`. */
  otelRetryAfterMaxMs: 60_000,
  /** Between two lines of the log about dropped spans or a failing collector. */
  otelLogPauseMs: 60_000,
  /** How long a process sends its last spans or metrics before it exits. */
  otelCloseTimeoutMs: 1_500,
  /** Requests that are recorded because a trusted proxy has set the flag `sampled`, in each process. */
  otelFlaggedPerSecondMax: 100,
  /**
   * A client can choose a trace id that is always recorded. Each process records twice the expected share of such requests, and so many more
   * a second. Then the id of the request decides.
   */
  otelChosenPerSecondMax: 100,
  /**
   * Requests of each kind (refused, failed, slow) that each process records although they are not sampled, and those of one key or one
   * address.
   */
  otelKeptPerSecondMax: 20,
  otelKeptPerHolderMax: 4,

  /**
   * The pause before an exited worker is replaced. It doubles after each worker that ran for less than `workerSteadyMs`, so failing workers
   * take little CPU time from healthy workers.
   */
  workerPauseMs: 100,
  workerPauseMaxMs: 10_000,
  workerSteadyMs: 60_000,
  /**
   * From the start of a worker until it listens. A slower worker is killed. With 100,000 keys, the start takes one second, or ten seconds
   * on a busy machine.
   */
  workerStartTimeoutMs: 120_000,
  /** How often a worker reports its figures. A silent worker is killed and replaced, because its event loop hangs. */
  workerReportIntervalMs: 1_000,
  workerSilenceMaxMs: 30_000,
  /** How long `/metrics` waits for each worker. Then it shows the worker's previous metrics. */
  workerReplyTimeoutMs: 1_000,
  /** How long workers may take to exit after the deadline of a drain. */
  workerEndTimeoutMs: 3_000,
  /** Connections to a target that every worker may open, even if there are many workers. */
  workerConnectionsPerTargetMin: 16,

  /** How often the configuration files are checked for changes. An edit takes effect after two checks have found the same content. */
  configPollIntervalMs: 250,
  /** If a load takes longer, the log names the file that is being loaded. */
  configLoadSlowMs: 2_000,
  /**
   * How long a load may continue after the files have changed again, and how long while a long text is parsed. Then it is cancelled, and
   * the new content is loaded. Both limits double after each cancellation.
   */
  configOutdatedLoadMs: 2_000,
  configOutdatedParseMs: 500,
  /**
   * The pause before a new load after the loader thread has died, for example for lack of memory. It doubles, because each attempt occupies
   * a CPU for seconds.
   */
  configRetryPauseMs: 10_000,
  configRetryPauseMaxMs: 600_000,
  configThreadIdleMs: 60_000,
  /** Prevents a configuration from filling the gateway's memory. Loading the largest keys file takes 1,280 MiB. */
  configThreadHeapMebibytes: 1_536,
  /** The part of the heap for young objects. V8's default takes 45 MiB more with 100,000 keys, and is not faster. */
  configThreadYoungMebibytes: 16,
  /**
   * A file is read at every check until this time has passed since its last change. Two edits within 10 ms (2 s on some file systems) may
   * have the same timestamp.
   */
  configSettledAfterMs: 100,
  configSettledCoarseMs: 3_000,
  /**
   * How long a command waits for one other process that edits the keys (an edit takes at most a second), and for all earlier processes in
   * the queue. It tries again at the last interval.
   */
  editLockWaitMs: 10_000,
  editLockQueueMs: 300_000,
  editLockPollMs: 20,

  /** All DNS lookups of `tollgate check`, and the connection from `tollgate init` to the upstream. */
  checkLookupTimeoutMs: 2_000,

  /** How long a command waits for a response of the admin API (longer than `adminResponseTimeoutMs`), and the largest response. */
  adminCallTimeoutMs: 15_000,
  adminReplyBytesMax: 67_108_864,
  /** The longest secret that `tollgate keys whoami` reads. A request cannot have a longer secret, because of `headersBytesMax`. */
  secretInputCharsMax: 32_768,
  /**
   * How often `tollgate keys import --directory` repeats a part. The gateway limits the changes of a token per minute, so all pauses
   * together are longer than a minute.
   */
  importRetries: 15,
  importRetryMs: 5_000,
  /** How often `tollgate changes --follow` reads new changes, and the longest pause before it tries again while they cannot be read. */
  followIntervalMs: 2_000,
  followRetryMaxMs: 30_000,
  /** How often `tollgate top` reads and draws the state, and the silence after which it shows a warning. */
  topIntervalMs: 1_000,
  topSilenceShownMs: 3_000,
  /**
   * The shortest interval at which `tollgate top` reads the keys, and the pause after a slow read, as a multiple of the read's duration.
   */
  topKeysIntervalMs: 5_000,
  topKeysPauseFactor: 20,
  /** In each of the two lists of `tollgate top`. */
  topKeysMax: 10,
  /** The part of a log line that `tollgate why` reads. All lines of the gateway's log are shorter. */
  logLineReadBytesMax: 1_048_576,

  /** Log lines in the buffer, in characters. Each write costs work in another thread. */
  logLinesLengthMax: 65_536,
  /** The buffer if several processes write into one pipe (PIPE_BUF of Linux). */
  logSharedBytesMax: 4_096,
  /** A quiet gateway also shows its lines after this time. */
  logFlushIntervalMs: 1_000,
  /** The buffer while standard output is not read. Further lines are dropped. */
  logUnreadBytesMax: 16_777_216,
  /** Similar requests within this time share one line of the log at a terminal. */
  sameRequestMs: 1_000,
  /** How long the process waits for its last log lines before it exits. */
  logCloseTimeoutMs: 1_000,

  /**
   * After SIGTERM, `/readyz` answers 503 for `drainGraceMs`. Then the gateway stops listening, and requests in flight may take
   * `drainDeadlineMs`. Then events and webhooks may take `drainEventsMs`. With the end of workers and of the last counts, this is less
   * than the 30 s after which Docker and Kubernetes kill a process.
   */
  drainGraceMs: 1_000,
  drainDeadlineMs: 22_000,
  drainEventsMs: 3_000,
  /** How long, and how many paths, requests outside of the path of `baseUrl` are counted before the log shows a hint. */
  basePathHintMs: 60_000,
  basePathHintPathsMax: 16,
  /** How often entries of `X-Forwarded-For` that are no addresses are logged, and how long `/readyz` reports them after the last one. */
  forwardedForIntervalMs: 60_000,
  /** Two Ctrl-C within this time count as one, because a Ctrl-C under npm arrives twice: from the terminal and from npm. */
  signalEchoMs: 500,
  /** How often a process under `npx` checks whether its parent still exists. */
  parentPollMs: 500,

  /** Tests use short windows. */
  windowsMs: calendarWindowsMs,
});

export type Bounds = { readonly [Name in BoundName]: number } & { readonly windowsMs: WindowsMs };

export type BoundName = Exclude<keyof typeof defaultBounds, 'windowsMs'>;
