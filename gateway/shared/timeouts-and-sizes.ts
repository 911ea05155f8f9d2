import { calendarWindowsMs, type WindowsMs } from './calendar-windows.ts';

/**
 * The limits of all waits, queues, bodies, header blocks and retries. The name of each limit contains the limit's unit. `main.ts`,
 * `server/` and the command line pass these limits to all other code, so that tests can pass other limits. Operators set some limits (body
 * size, bans, address bucket) in the configuration, with defaults in `config/schema/defaults.ts`. `config/config-sizes.ts` limits the size
 * of a configuration.
 */
export const defaultBounds = Object.freeze({
  /** The longest URI of a request; a longer URI gets 414. RFC 9112 §3 recommends at least 8,000 octets for the request line. */
  targetBytesMax: 8_192,
  /** The maximum size of the URI and the header fields together, as counted by Node's parser; a larger request gets 431. */
  headersBytesMax: 32_768,
  /** The maximum number of header fields of one request; more fields get 431. Node would silently drop fields beyond its own maximum. */
  headersCountMax: 100,
  /** The timeout from the first octet of a request to the end of its header; a slower request gets 408. */
  headersTimeoutMs: 10_000,
  /** The timeout from the first octet of a request to the end of its body. */
  requestTimeoutMs: 60_000,
  /** The interval at which Node checks `headersTimeoutMs` and `requestTimeoutMs`. */
  connectionsCheckingIntervalMs: 1_000,
  /** The timeout from the accepted TCP connection to the end of the TLS handshake. A slower client is disconnected. */
  tlsHandshakeTimeoutMs: 10_000,
  /** The interval at which failed TLS handshakes are logged, in one line with their number. */
  tlsFailuresIntervalMs: 10_000,
  /**
   * The interval at which an expiring certificate is logged. An expiring certificate is also logged whenever the configuration is loaded.
   */
  certificateNoticeIntervalMs: 86_400_000,
  /** The idle time after which a kept-alive client connection is closed. */
  keepAliveTimeoutMs: 65_000,
  /**
   * The idle time in the `Keep-Alive` field is shorter than `keepAliveTimeoutMs`, so that clients do not send into a connection that is
   * about to close.
   */
  keepAliveAnnouncedSeconds: 60,
  /** How long a client may stop reading its response before it is disconnected. See also `clientReadAheadMaxMs`. */
  writeTimeoutMs: 30_000,
  /**
   * How long a client that has closed its sending side waits for the next octet of its response. Then it counts as gone, because a client
   * that has left looks the same until the gateway sends it an octet. Its request uses an upstream connection meanwhile.
   */
  halfClosedTimeoutMs: 10_000,
  /** The maximum number of client connections of this process. */
  connectionsMax: 10_000,
  /**
   * The maximum number of client connections from one peer address, so that one client cannot take all of `connectionsMax`. An IPv6 /64
   * network counts as one address.
   */
  connectionsPerAddressMax: 2_048,
  /**
   * The maximum number of octets of a request body that are read after an early response. A close with unread octets would reset the
   * connection, and the client could lose the response.
   */
  lingerBytesMax: 262_144,
  /** How long a request body is read after an early response. The connection is closed within a second of the response. */
  lingerTimeoutMs: 750,
  /** The maximum number of pipelined requests on one connection. The response to the last of these requests has `Connection: close`. */
  pipelinedMax: 64,
  /** How long idle connections stay open during a drain, so that a request that is just arriving is served. */
  drainIdleGraceMs: 500,

  /**
   * The maximum number of CORS preflights of one client address per minute. Further preflights get 429. Requests without a key are counted
   * separately.
   */
  preflightsPerMinuteMax: 600,
  /** How long a browser may cache the response to a preflight. Chromium accepts at most two hours. */
  preflightMaxAgeSeconds: 7_200,

  /**
   * The maximum number of requests of one client address per minute for the API reference. Further requests get 429. A visit to the API
   * reference takes five requests.
   */
  docsReadsPerMinuteMax: 600,
  /**
   * The maximum number of unread octets of all responses with the API reference, shared among client addresses (`shares.ts`). Further
   * requests get 429.
   */
  docsUnreadBytesMax: 67_108_864,
  /**
   * The assumed reading rate of a client of the API reference. A response counts as unread for at least the time that a client needs to
   * read the response at this rate.
   */
  docsReadBytesPerSecond: 100_000,
  /** How long a client may take to read a response with the API reference: half a megabyte at 4 KB/s. */
  docsReadTimeoutMs: 120_000,
  /**
   * How often per minute a client may read the limits of its key (`limitsPath`). Further reads get 429. Reads of the limits are not charged
   * to the quota of the key.
   */
  limitsReadsPerMinuteMax: 60,
  /**
   * The longest period of usage, in days, that a key holder may read in one request. The three limits are for rows per minute, per hour and
   * per day. A longer period gets 400.
   */
  ownUsageMinutesDaysMax: 1,
  ownUsageHoursDaysMax: 7,
  ownUsageDaysMax: 31,
  /**
   * The maximum number of concurrent reads of the usage record by key holders in one process. The gateway divides this maximum among the
   * keys (`shares.ts`). Further reads get 429. A read that has not ended after `ownReadTimeoutMs` also gets 429.
   */
  ownReadsMax: 64,
  ownReadTimeoutMs: 10_000,
  /**
   * Reads of the usage record by key holders keep the event loop busy for at most 1/(`ownReadsRestFactor` + 1) of the time. At least three
   * quarters of the time remain for the requests of customers.
   */
  ownReadsRestFactor: 3,
  /** How long a secret stays valid after its holder has rotated it. */
  ownRotationOverlapMs: 86_400_000,
  /**
   * How often holders may rotate a secret of an operator and its descendants. A key keeps the digests of the removed secrets between them,
   * so that a report of each secret ends its descendants. A thief who could rotate further could make the gateway forget the leaked secret.
   */
  ownRotationsMax: 200,
  /**
   * The maximum number of deprecated operations for which the gateway looks up the calls of a key. The operations with the earliest sunset
   * take precedence.
   */
  ownDeprecatedOperationsMax: 100,

  /**
   * The maximum number of reports of leaked secrets from one client address per minute. Further reports get 429.
   */
  leakReportsPerMinuteMax: 600,
  /**
   * The maximum size of one report, enough for a hundred thousand secrets, and the maximum size of all reports in memory. Client addresses
   * share the memory (`shares.ts`). A larger report gets 413. A report without room gets 429.
   */
  leakReportBytesMax: 33_554_432,
  leakReportsBytesMax: 100_663_296,
  /** The maximum number of reports in progress, which client addresses share, and how many are processed at the same time. */
  leakReportsMax: 1_024,
  /**
   * How long a body waits for room, and the interval at which it tries again. The body takes the room of older bodies that arrive more slowly
   * than `leakBodyBytesPerSecondMin`. A body that stops counts as slow after at most `leakBodyStalledMs`.
   */
  leakRoomWaitMs: 5_000,
  leakRoomTriedMs: 50,
  leakBodyBytesPerSecondMin: 65_536,
  leakBodyStalledMs: 1_000,
  leakReportsAtOnceMax: 2,
  /** The maximum size of one entry of a report. */
  leakEntryBytesMax: 2_097_152,
  /**
   * A report is processed in slices of `leakSliceMs`. After each slice the process serves requests for `leakRestFactor` times the duration
   * of the slice.
   */
  leakSliceMs: 1,
  leakRestFactor: 3,
  /** The maximum number of secrets of one report that the gateway looks up in the key directory, or blocks, at the same time. */
  leakLookUpsAtOnce: 16,
  /** The maximum length of a URL, and of the other texts that describe where a secret was found, in characters. */
  leakUrlCharsMax: 500,
  leakWordCharsMax: 100,
  /** The maximum number of secrets in one report to the admin API, and the maximum size and number of members of its body. */
  leakBodyBytesMax: 1_048_576,
  leakBodyMembersMax: 16_384,
  /**
   * The timeout and the maximum size of a list of GitHub's public keys. The list is fetched at most once in `leakKeysFetchedMs`. A list
   * that is older than `leakKeysKeptMs` is fetched again. At most `leakIdentifiersMax` unknown identifiers wait for the next fetch.
   */
  leakKeysTimeoutMs: 5_000,
  leakKeysBytesMax: 262_144,
  leakKeysFetchedMs: 60_000,
  leakIdentifiersMax: 1_000,
  leakKeysKeptMs: 86_400_000,
  /**
   * How long after a leak a repeated report records the leak again, and how many recorded leaks a gateway remembers. The time is less than
   * `noticesMergedAfterEndMs`, so receivers get one event.
   */
  leakRecordedAgainMs: 43_200_000,
  leaksRememberedMax: 10_000,
  /** The interval at which a process reads the leaked secrets of the configuration. */
  leaksReadIntervalMs: 1_000,
  /** How long a process that starts waits for Redis to read the leaked secrets. */
  leaksStartTimeoutMs: 1_000,
  /** How long a key is marked after a leak of one of its secrets. Every process reads the leaks more often than this. */
  leakNotedMs: 3_600_000,
  /**
   * The interval at which a gateway notes that its configuration still has a leaked secret, and the time after which the secret is no longer
   * blocked because no gateway's configuration has it.
   */
  leakRenewalMs: 60_000,
  leakBlockKeptMs: 600_000,

  /** The deadline of a store call that decides requests. If the store replies later, the store counts as unavailable for these requests. */
  storeDeadlineMs: 50,
  /**
   * The duration of a lease and the interval of its renewal. A lease contains the number of requests that a process serves for a key with
   * a concurrency limit. The lease of a killed process expires after this duration.
   */
  leaseMs: 30_000,
  leaseRenewalMs: 10_000,
  /**
   * If the concurrency limit of a key refuses all requests of a store call, the next call for the key waits for this pause. The next call
   * decides all requests that arrive during the pause, so a flood costs few calls. The pause ends early when a request of the key ends.
   */
  crowdedPauseMs: 20,
  /** The deadline of a store call for an operator, for example to read counts, lift a ban or reset a quota. */
  storePatientDeadlineMs: 1_000,
  /** The interval at which an unavailable store is probed. */
  storeProbeIntervalMs: 200,
  /**
   * If a store fails again within this time after its recovery, the store has relapsed. A relapse is likely if the store is fast when it is
   * idle and too slow under load.
   */
  storeRelapseMs: 10_000,
  /**
   * A store counts as available again after a number of successful probes in a row. One probe suffices at first, and each relapse doubles
   * the number up to this maximum.
   */
  storeProbesMax: 32,
  /**
   * While a store is away, each new reason is logged. A reason that was logged before is logged again after this time. The maximum is the
   * number of reasons that are remembered.
   */
  storeReasonRepeatMs: 60_000,
  storeReasonsMax: 16,
  /** The longest pause between two attempts to connect to Redis. */
  storeReconnectMaxMs: 250,
  /**
   * The timeout for reading the slots of a Cluster from one of its servers over a new connection. After this time the next server is asked.
   */
  storeSlotsTimeoutMs: 250,
  /** The timeout of a TCP connect to Redis. */
  storeConnectTimeoutMs: 1_000,
  /**
   * How long a Redis connection may receive no octet while replies are outstanding. After this time the connection is closed, because its
   * server hangs or cannot be reached.
   */
  storeSilenceMaxMs: 1_000,
  /** If the ACL has refused a Redis command, the command is tried again at this interval. */
  storeAclRetryMs: 10_000,
  /** The interval at which an available store is checked, so that `/readyz` is up to date without traffic. */
  storeHeartbeatIntervalMs: 1_000,
  /**
   * The number of failed calls in a row after which the store counts as unavailable. After a lost connection the store counts as
   * unavailable immediately.
   */
  storeFailuresMax: 3,
  /** How long the first decisions of a process wait for the first connection to Redis. */
  storeStartTimeoutMs: 1_000,
  /** The maximum number of keys for which a process remembers that it has warned about unusable data in Redis. */
  warnedKeysMax: 1_000,
  /** The maximum number of keys for which a process caches the last counts and the unsent local decisions. */
  rememberedKeysMax: 100_000,
  /**
   * For each client address, a process counts the requests without a valid key. `rememberedAddressesMax` is the maximum number of addresses
   * in memory. The oldest address is evicted first.
   */
  rememberedAddressesMax: 100_000,
  /** The maximum number of requests of one key in one call to the store. */
  requestsPerCallMax: 1_024,
  /**
   * The maximum number of keys in one call to the store, if one Redis server stores all keys. The server does no other work during the
   * call.
   */
  keysPerCallMax: 32,
  /** How long a process may refuse requests because of cached counts, without a call to the store. */
  refusalRememberedMs: 1_000,
  /**
   * How long a process repeats its last decision on a banned key. The lifting of a ban takes effect after at most `refusalRememberedMs`
   * plus this time.
   */
  banRepeatedMs: 100,
  /** The maximum number of bans whose end a process will log, and the interval at which the process checks for expired bans. */
  loggedBansMax: 10_000,
  banEndIntervalMs: 1_000,
  /**
   * The maximum number of reported thresholds that a process remembers. The oldest is forgotten first, and may be reported again. A
   * threshold is also reported again if it is not confirmed within `thresholdRepeatMs`. Repeated reports do not lead to a second event.
   */
  reportedThresholdsMax: 20_000,
  thresholdRepeatMs: 60_000,
  /**
   * A process may refuse a request without a call to the store, and report the refusal later. A report contains at most
   * `strikesPerReportMax` refusals of one key. At most the share `strikesHeldShareMax` of the refusals that remain until the ban may wait
   * for a report. If fewer than a hundred refusals remain, each refusal is reported immediately. A key is therefore banned at its threshold
   * even if several processes refuse its requests.
   */
  strikesPerReportMax: 50,
  strikesHeldShareMax: 0.01,
  /** The interval at which a process reports the local decisions that it has not yet sent to the store. */
  reportIntervalMs: 1_000,
  /** The maximum number of keys in one report of local decisions. */
  keysPerReportMax: 500,
  /** The timeout at shutdown for the last report of local decisions. */
  storeCloseTimeoutMs: 1_000,

  /**
   * The interval at which a process reports the counts of a guarded plan and reads the state of its guard. Counts that Redis has not received
   * wait in slots of `guardSlotMs`.
   */
  guardIntervalMs: 1_000,
  /** A guard judges the requests of the last `guardSlots` slots: ten minutes, and at least `guardRequestsMin` requests. */
  guardSlotMs: 10_000,
  guardSlots: 60,
  guardRequestsMin: 100,
  /**
   * The maximum number of keys whose counts a slot lists separately. With more keys, the slot counts groups of keys (`guard-counts.ts`).
   */
  guardKeysPerSlotMax: 64,
  /** How long Redis keeps the state of a guard after the last gateway with this guard in its configuration has read it. */
  guardKeptMs: 2_592_000_000,
  /**
   * A revert needs refusals of half of the keys of the plan that were active within `guardActiveMs`, and at most of five keys. Redis therefore
   * has at most `guardActiveKeysMax` active keys of each plan. A process notes an active key again after `guardActiveRenewMs`.
   */
  guardActiveMs: 86_400_000,
  guardActiveKeysMax: 10,
  guardActiveRenewMs: 600_000,
  /** How long a process that starts waits for the state of the guards. */
  guardStartTimeoutMs: 1_000,

  /**
   * The maximum number of secrets of one key in the key directory. A rotation needs two secrets. The limit is higher, because a careless
   * integration may use more.
   */
  directorySecretsPerKeyMax: 16,
  /**
   * How long a process uses a cached key of the key directory without a decision by Redis about the key. Each decision by Redis reveals a
   * change of the key. For requests that Redis decides, a cached key therefore has no such limit.
   */
  directoryCachedMs: 60_000,
  /**
   * How long Redis keeps the generation of a key of the key directory after a process has read the key. When the generation has expired, the
   * processes that have cached the key read the key again.
   */
  directoryGenerationKeptMs: 604_800_000,
  /**
   * The maximum number of keys of the key directory that a process caches as objects, and the maximum number of octets that they may take.
   * Most keys take about 640 octets. A key with many operations takes 100,000 octets. The least recently used key is packed.
   */
  directoryCachedKeysMax: 50_000,
  directoryCachedBytesMax: 33_554_432,
  /**
   * The maximum number of octets of packed keys. Most keys take about 130 octets. A process takes this memory only when it needs it. The
   * least recently used keys are evicted, and their next requests read them again.
   */
  directoryPackedBytesMax: 167_772_160,
  /**
   * The maximum number of cached secrets of the key directory, about 930 octets each. A full cache is cleared, and digests are computed
   * again.
   */
  directoryCachedSecretsMax: 50_000,
  /**
   * The lifetime and the maximum number of cache entries for secrets without a usable key. While Redis is unavailable, the expired cache
   * entry of a key is extended by the same lifetime.
   */
  directoryAbsentMs: 1_000,
  directoryAbsentMax: 10_000,
  /**
   * The maximum number of look-ups in flight in the key directory. `directoryLookUpsWaitingMax` is the maximum number of look-ups in flight
   * or waiting, shared among client addresses (`shares.ts`). Further requests get 503.
   */
  directoryLookUpsMax: 128,
  directoryLookUpsWaitingMax: 4_096,
  /** The minimum time between two batches of look-ups in the key directory. Look-ups that arrive in between wait for the next batch. */
  directoryLookUpRoundMs: 4,
  /** How often the gateway reads the key of a request again if the key changes during the decision. */
  directoryRereadsMax: 3,
  /**
   * The maximum number of recently changed keys that a process remembers, so that a look-up that began before a change does not cache the
   * old key.
   */
  directoryKnownChangesMax: 10_000,
  /**
   * The record of a new key must be written within `directoryCreatedWithinMs` after the key's id was added to the list of ids. An id in the
   * list counts as left over if it has no record after `directoryLeftoverMs`. `directoryLeftoverMs` is longer than
   * `directoryCreatedWithinMs`, because the clocks of a Cluster's servers may differ.
   */
  directoryCreatedWithinMs: 60_000,
  directoryLeftoverMs: 600_000,
  /** The maximum number of possibly left-over ids and digests that a process checks at the same time. */
  directoryTidiedAtOnceMax: 16,
  /** The deadline of a look-up in the key directory. If the store replies later, the store counts as unavailable for this request. */
  directoryLookUpDeadlineMs: 250,
  /**
   * How often a process reads whether Tollgate issued every secret of the key directory, and how long the process relies on the reply. An
   * import of digests waits for `directoryMarkWaitMs`, which is longer than `directoryMarkLeaseMs`, and repeats this wait at most
   * `directoryMarkWaitsMax` times. Processes read only while clients send secrets with wrong checksums.
   */
  directoryMarkReadMs: 300,
  directoryMarkLeaseMs: 1_000,
  directoryMarkWaitMs: 1_500,
  directoryMarkWaitsMax: 3,

  /**
   * The timeout of a TCP connect to a target, including any TLS handshake. An upstream may set its own connect, header and total timeout.
   */
  connectTimeoutMs: 2_000,
  /** The timeout from the sent request to the first octet of the target's response. */
  upstreamHeadersTimeoutMs: 30_000,
  /** The timeout between two chunks of a target's response body. */
  upstreamBodyIdleTimeoutMs: 30_000,
  /** The timeout of the whole exchange with an upstream, including retries. */
  upstreamTotalTimeoutMs: 120_000,
  /**
   * The maximum number of connections to one target, shared among keys (`shares.ts`). Each connection carries at most one request at a
   * time.
   */
  connectionsPerTargetMax: 256,
  /**
   * The maximum number of requests that wait for a connection to one target, shared among keys. Further requests get 503. A single key gets
   * at most half of the places.
   */
  queuedPerTargetMax: 4_096,
  /** The maximum number of WebSockets to one target, shared among keys (`shares.ts`). A further WebSocket gets 503. */
  tunnelsPerTargetMax: 4_096,
  /**
   * The maximum number of WebSockets of one key in this process. A further WebSocket gets 503, and the access line names the client as the
   * side at fault.
   */
  tunnelsPerKeyMax: 256,
  /**
   * The maximum number of octets that all WebSockets of this process relay in one turn of the event loop, in both directions. Keys take
   * turns.
   */
  tunnelBytesPerTurnMax: 65_536,
  /** How long a WebSocket may have no traffic in either direction before it is closed. Most clients and servers ping every minute. */
  tunnelIdleTimeoutMs: 600_000,
  /** The interval at which the cached keys of open WebSockets are checked. A reload also checks these keys. */
  tunnelCheckIntervalMs: 1_000,
  /**
   * The interval at which the keys of open WebSockets are read again from the key directory, and the maximum number of reads at the same
   * time. A thousand reads take 0.1 to 0.3 s.
   */
  tunnelReadIntervalMs: 5_000,
  tunnelsReadAtOnce: 16,
  /** The maximum number of WebSockets that are checked in one turn of the event loop. The checks of one turn take at most a millisecond. */
  tunnelsCheckedPerTurn: 256,
  /** The maximum total size of a response's header block and its interim responses. The same limit applies to the trailers. */
  upstreamHeadersBytesMax: 65_536,
  /** The maximum number of header fields of one response. The same limit applies to the trailer fields. */
  upstreamFieldsCountMax: 256,
  /** The maximum size of all chunk extensions of one response. The gateway skips chunk extensions, which backends normally do not send. */
  chunkExtensionsBytesMax: 4_096,
  /** The maximum number of interim responses (1xx) before one response of a target. More interim responses give 502. */
  interimResponsesMax: 16,
  /** The size of the read buffer of a connection to a target. */
  upstreamReadBytesMax: 16_384,
  /** The idle time after which a connection to a target is closed if the backend announces no idle time. */
  upstreamIdleTimeoutMs: 4_000,
  /**
   * The longest idle time of a connection to a target. The gateway uses half of the idle time that the backend announces, up to this limit.
   */
  upstreamIdleTimeoutMaxMs: 60_000,
  /** The interval of DNS lookups of the upstream's host name. */
  resolveIntervalMs: 2_000,
  /**
   * The pause between two health checks of a target, and the timeout of one check. A hanging target is detected after one pause and two
   * checks (900 ms), so new requests avoid the target within a second.
   */
  healthPauseMs: 200,
  healthTimeoutMs: 350,
  /**
   * If N processes check the same target, each process checks a healthy target every `healthFleetPauseMs` × N on average, or every
   * `healthOwnPauseMaxMs` if this is shorter. A process never checks more often than every `healthTurnMs` × N. A process repeats a failed
   * check of a healthy target once, so a target gets at most 100 checks a second.
   */
  healthFleetPauseMs: 100,
  healthOwnPauseMaxMs: 10_000,
  healthTurnMs: 20,
  /**
   * The deadline of a call to Redis about health checks. If Redis replies later, the process checks its targets alone. Until this deadline, a
   * process of a large fleet may wait for its turn, so the deadline is short.
   */
  healthExchangeDeadlineMs: 350,
  /** The periods in which processes count how many processes check a target, and the number of targets in one call. */
  healthCheckersPeriodMs: 10_000,
  healthCheckersAtOnce: 250,
  /** The number of processes that must agree before a target counts as failing, or as healthy again, for the whole fleet. */
  healthReportersMin: 3,
  /**
   * The maximum number of failing targets in Redis, how long Redis keeps a failing target after the last report, and the maximum length of
   * the reason.
   */
  healthFailingMax: 1_000,
  healthFailingKeptMs: 30_000,
  healthReasonCharsMax: 200,
  /** The maximum number of attempts of one request, including the first. */
  attemptsMax: 3,
  /** The pause before attempt n is random (full jitter): between 0 and min(cap, base × 2^(n−1)). */
  retryBaseMs: 10,
  retryCapMs: 200,
  /**
   * The maximum share of requests that may be retried in each window. `retryBudgetFloor` allows a few more retries, so that a gateway with
   * few requests can retry.
   */
  retryBudgetRatio: 0.2,
  retryBudgetFloor: 10,
  retryBudgetWindowMs: 10_000,
  /**
   * The maximum number of octets of a request body that the gateway reads before the request takes a connection to a target. A slow client
   * with a small body therefore occupies no connection.
   */
  collectedBodyBytesMax: 65_536,
  /** The maximum size of all collected request bodies of this process, shared among keys (`shares.ts`). Further requests get 503. */
  collectedBodiesBytesMax: 67_108_864,
  /**
   * The slowest rate at which a client may send a body or read a response. The first deadline of a client is `clientGraceMs` after the
   * start. Each octet extends the deadline by the time that one octet takes at this rate. The deadline is at most `clientAheadMaxMs` in the
   * future. A fast client therefore stays connected if it loses its network for a moment.
   */
  clientBytesPerSecondMin: 500,
  clientGraceMs: 5_000,
  clientAheadMaxMs: 30_000,
  /**
   * The largest extension of the deadline of a client that reads. The gateway sees only the octets that the kernel accepts for a client. The
   * kernel accepts more only when a third of its buffer is free. This third is up to 1.4 MB with Linux's default of 4 MiB, so a client that
   * reads 20 kB/s may seem to stop for 70 s.
   */
  clientReadAheadMaxMs: 120_000,
  /**
   * The interval at which exchanges, connections to targets and waiting requests are checked for timeouts. If an upstream has short
   * timeouts, the interval is shorter, but never shorter than `sweepIntervalMinMs`.
   */
  sweepIntervalMs: 1_000,
  sweepIntervalMinMs: 20,
  /** How long exchanges may continue after the forwarder is closed. */
  upstreamCloseTimeoutMs: 1_000,

  /** The maximum number of connections to the admin listener, shared among client addresses (`shares.ts`). */
  adminConnectionsMax: 512,
  /**
   * The maximum number of admin connections that may begin per second, and the maximum number that may begin in one burst after a pause.
   * Further connections wait, and the gateway reads nothing from them. Client addresses take turns. A TLS handshake takes 0.2 to 1 ms.
   */
  adminConnectionsPerSecondMax: 250,
  adminConnectionsAtOnceMax: 16,
  /**
   * The maximum number of waiting connections per second in whose first packet the admin listener looks for a token, and the maximum number
   * in one burst after a pause. A look takes 30 µs.
   */
  adminLooksPerSecondMax: 6_000,
  adminLooksAtOnceMax: 512,
  /**
   * The maximum number of waiting requests of one admin connection. If one more request arrives, the gateway closes the connection.
   * Browsers and curl send one request at a time.
   */
  adminPipelinedMax: 4,
  /**
   * The admin listener divides its work into turns. In each turn, the listener begins one request, or parses octets of one connection. The
   * two limits are the maximum number of turns per second, and the maximum number of turns in one burst after a pause. The listener serves
   * client addresses in round-robin order. A turn takes 40 to 75 µs for a request, and up to 100 µs for parsing. A page for operators loads
   * 35 files at the same time.
   */
  adminTurnsPerSecondMax: 1_000,
  adminTurnsAtOnceMax: 16,
  /**
   * In each turn, the parser of the admin listener reads at least one slice of `adminSliceBytes`. The parser reads further slices until the
   * turn has taken `adminParsingMs`. A slice that consists of one-octet chunks takes 0.06 ms.
   */
  adminSliceBytes: 512,
  adminParsingMs: 0.05,
  /** How long the text of `/metrics` is cached. */
  metricsKeptMs: 1_000,
  /** The maximum size of the URI and the header fields of an admin request together, and the maximum size of the URI alone. */
  adminHeadersBytesMax: 16_384,
  adminTargetBytesMax: 2_048,
  /** The maximum number of admin API requests in flight, shared among tokens (`shares.ts`). Further requests get 503. */
  adminRequestsMax: 64,
  /** The deadline of an admin request, after which it gets 503. Each part of the request has a shorter deadline. */
  adminResponseTimeoutMs: 10_000,
  /**
   * The maximum size of the JSON body of an admin request, the maximum number of its members, and the time in which it must arrive. A body
   * of the maximum size can define a key with two thousand operations. A larger body gets 413, and a slower body gets 408.
   */
  adminBodyBytesMax: 65_536,
  adminBodyMembersMax: 4_096,
  adminBodyTimeoutMs: 5_000,
  /**
   * The maximum number of tokens with a request in progress. `adminTurnsMax` applies to the serving thread, and `readingTurnsMax` applies
   * to the reading thread. Each thread serves at most one request of a token at a time.
   */
  adminTurnsMax: 16,
  readingTurnsMax: 4,
  /** How long the idle reading thread is kept, the size of its heap, and the part of the heap for young objects. */
  readingThreadIdleMs: 60_000,
  readingThreadHeapMebibytes: 512,
  readingThreadYoungMebibytes: 16,
  /**
   * While Redis is away: the time between two attempts of the reading thread, and what the thread keeps of its last answers, in numbers of
   * usage records (8 octets each) and in keys of the directory.
   */
  readingAwayRetryMs: 1_000,
  readingRememberedNumbersMax: 500_000,
  readingRememberedKeysMax: 2_000,
  /** The reading thread is replaced when one request takes longer than this. */
  readingStuckMs: 30_000,
  /** The timeout of a query that the reading thread sends to the serving thread. */
  readingCallTimeoutMs: 2_000,
  /** How long a response that depends only on the settings is cached. */
  readingFixedKeptMs: 60_000,
  /** The maximum number of records of a large query that the serving thread returns in one turn of its event loop. */
  readingAskedAtOnceMax: 50,
  /**
   * The serving thread answers a large query in parts. After each part the thread serves requests for `readingPauseFactor` times the
   * duration of the part, but at most for `readingPauseMaxMs`.
   */
  readingPauseFactor: 4,
  readingPauseMaxMs: 20,
  /**
   * An admin response of more than `adminLargeResponseBytes` is written in pieces. A pause follows each piece, so that API requests are
   * served between the pieces. Each token has at most one large response in progress.
   */
  adminLargeResponseBytes: 262_144,
  adminPieceBytes: 131_072,
  adminPiecePauseMs: 1,
  /**
   * Each token pauses for at least `adminTurnPauseMs` after each request. On average, a token may keep the event loop of the serving thread
   * busy for at most 1/`adminRestFactor` of the time. The gateway makes the pauses longer to keep this average. The token may postpone
   * these pauses by up to `adminAheadMaxMs`.
   */
  adminTurnPauseMs: 2,
  adminRestFactor: 5,
  adminAheadMaxMs: 250,
  /**
   * The maximum number of changes by one token per minute on each process. Further changes get 429. `adminTokensCountedMax` is the maximum
   * number of tokens whose changes are counted.
   */
  adminChangesPerMinuteMax: 600,
  adminTokensCountedMax: 1_000,
  /** The maximum number of attempts to change a key while other clients change the same key. After the last attempt the change gets 409. */
  directoryChangeAttemptsMax: 10,
  /** How long an `Idempotency-Key` is kept: a day. */
  idempotencyKeptMs: 86_400_000,
  /**
   * The maximum number of keys of one import, the maximum size of its body, the maximum number of members of the body, and the maximum
   * number of keys that are written at the same time.
   */
  importKeysMax: 500,
  importBytesMax: 524_288,
  importMembersMax: 32_768,
  importKeysAtOnceMax: 25,
  /** How far in the future a grant may end: 400 days. */
  grantMaxMs: 34_560_000_000,
  /** The maximum number of wrong tokens per client address and minute that get 401. Further wrong tokens get 429. */
  adminWrongTokensPerMinuteMax: 10,
  /** The maximum number of client addresses whose wrong tokens are counted. The oldest address is evicted first. */
  adminGuessersMax: 10_000,
  /** The interval at which wrong tokens are logged, in one line with their number. */
  adminWrongTokensIntervalMs: 10_000,
  /** The maximum number of keys that one list request with a state filter examines before it returns a partial result with a cursor. */
  adminKeysExaminedMax: 10_000,
  /** The maximum number of rows in one response with the usage of a key: 8 days of minutes. */
  adminUsageRowsMax: 11_520,

  /**
   * The timeout for computing the usage distribution of a plan or the decisions of its trial, and how long the result is cached. The
   * computation reads the usage record of every active key.
   */
  planDistributionTimeoutMs: 5_000,
  planDistributionKeptMs: 30_000,
  /**
   * The limits of a simulation. `simulationTimeoutMs` is the timeout of one part of a simulation. Within a part, the keys are read and
   * replayed one after another. The limits on the request body allow 10,000 keys with edits of all windows. `simulationMinutesKeptMax` is
   * the maximum number of cached minutes (28 octets each), and `simulationKeptMs` is their lifetime.
   */
  simulationTimeoutMs: 2_000,
  simulationBytesMax: 1_048_576,
  simulationMembersMax: 65_536,
  simulationMinutesKeptMax: 2_000_000,
  simulationKeptMs: 60_000,
  /**
   * A simulation with edits of at most this many plans proposes guards. For each plan with requests, the simulation needs 20 KiB for each
   * simulated day.
   */
  simulationGuardsMax: 100,

  /**
   * The maximum number of shown credits of a key, and the maximum number of hours with failed units in one call to the store, counted for
   * each upstream and bucket.
   */
  creditsShownMax: 5,
  creditHoursPerCallMax: 48,
  /**
   * A run that gives back failed units works at most `makegoodPartMs` for one part. After each part, the token pauses (`adminRestFactor`). A
   * run reads and credits `makegoodKeysAtOnce` keys at the same time, and then pauses for `makegoodPauseMs`. If the gateway is busy or Redis
   * is away, the command requests a part again after `makegoodRetryMs`, at most `makegoodRetries` times.
   */
  makegoodPartMs: 500,
  makegoodKeysAtOnce: 25,
  makegoodPauseMs: 1,
  makegoodRetries: 20,
  makegoodRetryMs: 1_000,
  /** The maximum number of named keys that a run could not read, and the time after which a run counts as ended if no part follows. */
  makegoodKeysNamedMax: 20,
  makegoodIdleMs: 60_000,

  /** The interval at which a process reads the store's clock while its configuration has scheduled changes of plans. */
  planClockReadIntervalMs: 10_000,

  /**
   * The interval at which the counts of busy keys are flushed to the usage record, the number of slices into which each flush divides the
   * keys, and how many late slices are flushed in one turn of the event loop after a pause of the process.
   */
  usageFlushIntervalMs: 10_000,
  usageSlicesPerFlush: 100,
  usageSlicesAtOnceMax: 10,
  /**
   * A key is quiet while fewer than `usageQuietRequestsMax` of its requests are unsent. The counts of a quiet key are sent by the sixth flush
   * after a request, so after at most 60 s and the delay of the event loop.
   */
  usageQuietRequestsMax: 20,
  usageQuietRounds: 6,
  /**
   * The deadline of a call to the usage record. If a call takes longer, its batch is sent again as soon as the store replies. No batch is
   * counted twice.
   */
  usageCallTimeoutMs: 1_000,
  /**
   * The maximum number of fields and of records in one call to the usage record. A call with all fields keeps Redis busy for 3 ms, and a call
   * with all records for 1 ms.
   */
  usageFieldsPerCallMax: 250,
  usageRecordsPerCallMax: 16,
  /** The maximum number of unsent usage counts of all keys, about 60 octets each. Further counts are not recorded. */
  usageUnsentCountsMax: 500_000,
  /** The maximum number of operations that a process records separately, per key and day. Further operations are counted together. */
  usageOperationsPerKeyMax: 100,
  /** The maximum number of secrets whose last use a process records, per key and day. */
  usageSecretsPerKeyMax: 8,
  /**
   * The maximum number of client networks that a process records separately for refused requests, per key and day. Further networks are
   * counted together.
   */
  usageNetworksPerKeyMax: 8,
  /**
   * The maximum number of secrets that are not valid but were used, which a process records separately for each day. Further secrets are
   * counted together. A secret takes 30 to 2,000 octets.
   */
  usageDeadSecretsMax: 100,
  /**
   * The maximum number of upstreams whose failed units a process records separately, per key and day. Further upstreams are counted
   * together.
   */
  usageUpstreamsPerKeyMax: 8,
  /** The maximum number of trials that a process records per key and day. The decisions of further edits of the trial are not recorded. */
  usageTrialsPerKeyMax: 50,
  /** The maximum number of groups of operations that a process records per key and day. */
  usageGroupsPerKeyMax: 40,
  /** A process evicts the usage counts of a key after this number of flushes without a request of the key. */
  usageIdleRoundsMax: 30,
  /**
   * The number of keys whose usage counts stay in memory, about 3 kB each. If more keys are in memory, a key is evicted as soon as its
   * counts are sent. All counts are sent whenever `usageKeysMax` new keys have arrived. The memory therefore contains the counts of at most
   * 3 × `usageKeysMax` keys.
   */
  usageKeysMax: 20_000,
  /**
   * The maximum number of keys in the index of recently active keys, and the time after which a process updates the entry of a key that is
   * still active. A process writes at most `usageActiveKeysMax` entries in this time, because the index has room for no more.
   */
  usageActiveKeysMax: 10_000,
  usageActiveNotedMs: 60_000,
  /** The maximum number of recently active keys whose usage of the last 24 hours is kept in memory if no Redis is configured. */
  usageKeysInMemoryMax: 1_000,
  /**
   * What a process keeps of the counts that it has sent to Redis, for operators while Redis is away: the maximum number of keys, and the
   * hours whose minutes are kept.
   */
  usageRememberedKeysMax: 500,
  usageRememberedHours: 6,
  /** The interval at which the memory of Redis is checked, and the share of its `maxmemory` beyond which usage is not recorded. */
  usageMemoryCheckIntervalMs: 10_000,
  usageMemoryShareMax: 0.7,
  /**
   * A process adds the usage of past days to the total of each key, with this pause between two keys. `usageTotalsWaitingMax` is the
   * maximum number of waiting keys.
   */
  usageTotalsPauseMs: 20,
  usageTotalsWaitingMax: 100_000,
  /**
   * The maximum number of usage records that are read or written at the same time. Further records wait, so that Redis serves other clients
   * in between.
   */
  usageReadsPerTurnMax: 250,
  /** How long the process waits for its last usage batches before it exits. */
  usageCloseTimeoutMs: 2_000,

  /** The interval at which a process publishes its state, and how long a stopped process remains listed. */
  presenceIntervalMs: 1_000,
  presenceExpiryMs: 5_000,
  /**
   * The maximum number of listed processes, about a kilobyte each, and the maximum number of listed targets of one upstream. If more than
   * `presenceDetailedMax` processes are listed, a reader omits the healthy targets of the others. A reader reads `presenceReadAtOnce` states
   * in one turn of the event loop.
   */
  presenceProcessesMax: 2_000,
  presenceTargetsMax: 64,
  presenceDetailedMax: 500,
  presenceReadAtOnce: 50,
  /**
   * How long a flush waits until every process has sent its counts, the interval at which it reads the list of processes meanwhile, and the
   * maximum number of usage records that a process sends at the same time for a flush.
   */
  fleetFlushTimeoutMs: 5_000,
  fleetFlushPollMs: 200,
  fleetFlushRecordsAtOnce: 64,
  /**
   * During a flush, a process pauses after each part of its records for this multiple of the time that the part took. If all processes of a
   * large fleet flush at the same time, their calls therefore delay decisions by only a few milliseconds.
   */
  fleetFlushRestFactor: 1,
  /**
   * Commands and pages use an earlier flush that began less than this time ago. The usage record therefore never costs more than if every
   * process sent the counts of all its keys once in this time, however often operators read.
   */
  fleetFlushReusedMs: 10_000,
  /** The period over which a process computes its rates and percentiles. */
  recentFiguresMs: 10_000,
  /**
   * Failed requests are counted over `failuresShownMs`. Failed requests are reported if their number is at least `failingRequestsMin` and
   * their share of all requests is at least `failingShareMin`.
   */
  failuresShownMs: 60_000,
  failingRequestsMin: 5,
  failingShareMin: 0.01,
  /** The maximum number of recorded changes, and how long a change is kept: 90 days. */
  changesMax: 10_000,
  changesKeptMs: 7_776_000_000,
  /** Reports of the same change are merged if several processes send them within this time. */
  changesMergedWithinMs: 60_000,
  /** The maximum length of the recorded reason for a failed reload, in characters. */
  changeErrorCharsMax: 1_000,
  /**
   * The first limit is the maximum length of a changed member in the record of changes, in characters of JSON. The second limit is the
   * maximum number of changed members that a command reports for one change.
   */
  changeMemberCharsMax: 200,
  changeMembersMax: 12,
  /**
   * The maximum number of texts that describe one reload, the maximum number of characters of each text, and the maximum number of keys
   * that are named.
   */
  editTextsMax: 20,
  editTextCharsMax: 200,
  editedKeysNamedMax: 5,
  /** The maximum number of changes in one response. */
  changesPerPageMax: 200,
  /** The maximum number of recent changes in which the gateway searches for earlier limits of a key. */
  limitChangesReadMax: 2_000,
  /** The maximum number of processes that are counted as reporters of one change or event. */
  listReportsMax: 500,
  /** The maximum number of recorded events, and how long an event is kept: 7 days. */
  eventsMax: 2_000,
  eventsKeptMs: 604_800_000,
  /** Reports of the same event are merged if several processes send them within this time. */
  eventsMergedWithinMs: 10_000,
  /** The interval at which each process reads the figures of the queue of webhooks, for metrics and faults. */
  webhookCountsIntervalMs: 10_000,
  /** A receiver whose deliveries have failed for this time, and dropped events of this time, are shown as a fault. */
  webhookFailingNoticeMs: 300_000,
  webhookDroppedNoticeMs: 3_600_000,
  /** The maximum size of the body of a webhook. */
  webhookBodyBytesMax: 20_000,
  /** The maximum length of a text in the body of a webhook, such as a URL or an error message. */
  webhookTextCharsMax: 1_000,
  /** The maximum number of entries of a list in the body of a webhook. */
  webhookListMax: 500,
  /**
   * How long after the end of a ban or a window the reports of several processes are merged into one webhook event. A process whose Redis
   * is away reports late.
   */
  noticesMergedAfterEndMs: 86_400_000,
  /** How long reports of a threshold are merged after the counts of the key contain the report. */
  thresholdMergedMs: 600_000,
  /**
   * The pause between two scans for events that become due with the time, such as the expiry of a secret. The pause is `noticeScanPauseFactor`
   * times the length of the scan, but at least `noticeScanIntervalMs` and at most `noticeScanIntervalMaxMs`.
   */
  noticeScanIntervalMs: 60_000,
  noticeScanIntervalMaxMs: 3_600_000,
  noticeScanPauseFactor: 50,
  /** The number of keys that a scan reads at once, which takes a millisecond of CPU time, and the pause after that. */
  noticeScanKeysAtOnce: 50,
  noticeScanPauseMs: 20,
  /**
   * The number of events, and the time, after which a scan checks that the process may still scan and that the queue of deliveries has room.
   * While more than `noticeScanWaitingMax` deliveries wait, the scan pauses, so that it does not displace other events.
   */
  noticeScanEventsAtOnce: 50,
  noticeScanCheckMs: 1_000,
  noticeScanWaitingMax: 2_000,
  noticeScanFullPauseMs: 2_000,
  /** The time after which another process takes over the scans of a process that has died, after the end of a pause between two scans. */
  noticeScanLeadMs: 30_000,
  /** How long Redis keeps the end of the last scan after that scan: 400 days. */
  noticeScanKeptMs: 34_560_000_000,
  /** The maximum number of events in one response. */
  eventsPerPageMax: 200,
  /** The maximum number of webhook events in one response of the admin API. */
  webhooksPerPageMax: 200,
  /**
   * The list of deliveries also needs the events with a waiting or failed delivery. The gateway caches these events for this multiple of the
   * time that the read has taken. A full queue of 10,000 events takes 0.4 s and 0.2 s of CPU time.
   */
  webhookProblemsRestFactor: 20,
  /**
   * The maximum number of events of one kind that a process reports in one burst, and the interval at which it reports further events.
   * Excess events are counted and reported as one event after `eventsSummaryPauseMs`. The pause doubles, up to `eventsSummaryPauseMaxMs`,
   * while the excess continues.
   */
  eventsAtOnceMax: 20,
  eventsRefillMs: 4_000,
  eventsSummaryPauseMs: 1_000,
  eventsSummaryPauseMaxMs: 60_000,

  /**
   * The maximum number of events in the queue of webhook deliveries, and how long an event is kept: 30 days. A process keeps the same number
   * of events while Redis is away.
   */
  webhooksMax: 10_000,
  webhooksKeptMs: 2_592_000_000,
  /** How long the queue merges late reports about an event whose identity may occur again: a day. */
  webhookIdentityKeptMs: 86_400_000,
  /** The timeout from the start of an attempt to the end of the response head. Standard Webhooks recommends 15 to 30 s. */
  webhookTimeoutMs: 15_000,
  /**
   * The time after which a lookup of a receiver's host is slow, and the maximum number of hosts that are remembered as slow. Slow hosts are
   * looked up one after the other, because all lookups of a process share two threads.
   */
  slowLookupMs: 1_000,
  slowHostsMax: 100,
  /**
   * How long a process may work on a delivery that it has claimed. Then any process may claim the delivery again. The claim is longer than
   * an attempt, and is short enough for another process to take over within 30 s.
   */
  webhookClaimMs: 22_000,
  /**
   * How long a process remains the only sender to a receiver after its last claim. Other processes check for a receiver without a sender at
   * the interval `webhookSenderCheckMs`.
   */
  webhookSenderMs: 10_000,
  webhookSenderCheckMs: 5_000,
  /** The interval at which a sender checks for due deliveries. */
  webhookPollMs: 1_000,
  /**
   * The maximum number of concurrent attempts to one receiver. A receiver that hangs therefore takes no attempts from other receivers.
   */
  webhooksPerReceiverMax: 4,
  /**
   * The maximum number of attempts that a process starts per second, and in one burst after a pause. An attempt takes 1 ms of CPU time, so a
   * flood of events does not delay requests. Receivers take turns.
   */
  webhooksPerSecondMax: 100,
  webhooksAtOnceMax: 4,
  /** The shortest pause between two claims of deliveries. */
  webhookClaimPauseMs: 20,
  /** The maximum size of the head of a response, and of the part of its body that is read. */
  webhookResponseHeadBytesMax: 16_384,
  webhookResponseBodyBytesMax: 16_384,
  /** How long the body of a response is read before the connection is closed. The attempt ends earlier, with the head. */
  webhookLingerTimeoutMs: 1_000,
  /**
   * The longest pause before the first retry. Each further pause is longer by `webhookRetryFactor`, up to `webhookRetryPauseMaxMs`. A random
   * part of at most a quarter is subtracted from each pause. The retries end three days after the first attempt.
   */
  webhookRetryMs: 3_500,
  webhookRetryFactor: 4,
  webhookRetryPauseMaxMs: 21_600_000,
  webhookRetriesMs: 259_200_000,
  /** The longest pause that a receiver may request with `Retry-After`. */
  webhookRetryAfterMaxMs: 3_600_000,
  /**
   * After this number of failed attempts (about six minutes), a delivery no longer delays later deliveries of the same subject to the same
   * receiver.
   */
  webhookOrderedAttemptsMax: 5,
  /**
   * Waiting deliveries to a receiver fail after no process has had the receiver in its configuration for `webhookReceiverGoneMs`. Each
   * process reports its receivers to Redis at the interval `webhookReceiversNoteMs`. One call ends at most `webhooksEndedAtOnceMax`
   * deliveries.
   */
  webhookReceiverGoneMs: 3_600_000,
  webhookReceiversNoteMs: 60_000,
  webhooksEndedAtOnceMax: 100,
  /** The maximum length of the recorded reason for a failed attempt, in characters. */
  webhookErrorCharsMax: 200,
  /** The shortest time between two warnings in the log about one receiver. */
  webhookLogPauseMs: 60_000,
  /** The maximum number of events that one call reads for a list of deliveries. With 20 receivers, such a read takes 3 ms. */
  webhooksReadAtOnceMax: 50,
  /** How long a process waits for its attempts in progress before it exits. */
  webhooksCloseTimeoutMs: 2_000,

  /**
   * The pause before an exited worker is replaced. After each worker that ran for less than `workerSteadyMs`, the pause doubles, up to
   * `workerPauseMaxMs`. Failing workers therefore take little CPU time from healthy workers.
   */
  workerPauseMs: 100,
  workerPauseMaxMs: 10_000,
  workerSteadyMs: 60_000,
  /**
   * How long a worker may take from its start until it listens. A slower worker is killed. With 100,000 keys, the start takes one second,
   * or ten seconds on a busy machine.
   */
  workerStartTimeoutMs: 120_000,
  /**
   * The interval at which a worker reports its figures. A worker without a report for `workerSilenceMaxMs` is killed and replaced, because
   * its event loop hangs.
   */
  workerReportIntervalMs: 1_000,
  workerSilenceMaxMs: 30_000,
  /**
   * How long `/metrics` waits for each worker. If a worker does not reply within this time, `/metrics` shows the worker's previous metrics.
   */
  workerReplyTimeoutMs: 1_000,
  /** How long workers may take to exit after the deadline of a drain. */
  workerEndTimeoutMs: 3_000,
  /** The number of connections to a target that every worker may open, even if there are many workers. */
  workerConnectionsPerTargetMin: 16,

  /**
   * The interval at which the configuration files are checked for changes. An edit takes effect after two checks have found the same
   * content.
   */
  configPollIntervalMs: 250,
  /** If loading the configuration takes longer than this time, the log names the file that is being loaded. */
  configLoadSlowMs: 2_000,
  /**
   * How long the loading of the configuration may continue after the files have changed again. After this time, the loading is cancelled,
   * and the new content is loaded. While a long text is parsed, the limit is `configOutdatedParseMs`. Both limits double after each
   * cancellation.
   */
  configOutdatedLoadMs: 2_000,
  configOutdatedParseMs: 500,
  /**
   * The pause before the configuration is loaded again after the loader thread has died, for example for lack of memory. The pause doubles
   * up to `configRetryPauseMaxMs`, because each attempt occupies a CPU for seconds.
   */
  configRetryPauseMs: 10_000,
  configRetryPauseMaxMs: 600_000,
  /** How long the idle loader thread is kept. */
  configThreadIdleMs: 60_000,
  /**
   * The maximum heap of the loader thread. This limit prevents a configuration from filling the gateway's memory. Loading the largest keys
   * file takes 1,280 MiB.
   */
  configThreadHeapMebibytes: 1_536,
  /** The part of the loader thread's heap for young objects. V8's default takes 45 MiB more with 100,000 keys, and is not faster. */
  configThreadYoungMebibytes: 16,
  /**
   * A file is read at every check until this time has passed since its last change. Two edits within 10 ms (2 s on some file systems) may
   * have the same timestamp.
   */
  configSettledAfterMs: 100,
  configSettledCoarseMs: 3_000,
  /**
   * How long a command waits for one other process that edits the keys (an edit takes at most a second). `editLockQueueMs` limits the wait
   * for all earlier processes in the queue. `editLockPollMs` is the interval at which the command tries again.
   */
  editLockWaitMs: 10_000,
  editLockQueueMs: 300_000,
  editLockPollMs: 20,

  /** The timeout for all DNS lookups of `tollgate check`, and for the connection from `tollgate init` to the upstream. */
  checkLookupTimeoutMs: 2_000,

  /**
   * How long a command waits for a response of the admin API (longer than `adminResponseTimeoutMs`), and the largest response that it
   * reads.
   */
  adminCallTimeoutMs: 15_000,
  adminReplyBytesMax: 67_108_864,
  /** The longest secret that `tollgate keys whoami` reads. A request cannot have a longer secret, because of `headersBytesMax`. */
  secretInputCharsMax: 32_768,
  /**
   * How often `tollgate keys import --directory` repeats a part, and the pause before each repetition. The gateway limits the changes of a
   * token per minute, so all pauses together are longer than a minute.
   */
  importRetries: 15,
  importRetryMs: 5_000,
  /**
   * The interval at which `tollgate top` reads and draws the state. After `topSilenceShownMs` without a response, `top` shows a warning.
   */
  topIntervalMs: 1_000,
  topSilenceShownMs: 3_000,
  /**
   * The shortest interval at which `tollgate top` reads the keys, and the pause after a slow read, as a multiple of the read's duration.
   */
  topKeysIntervalMs: 5_000,
  topKeysPauseFactor: 20,
  /** The maximum number of keys in each of the two lists of `tollgate top`. */
  topKeysMax: 10,
  /** The maximum size of the part of a log line that `tollgate why` reads. All lines of the gateway's log are shorter than this limit. */
  logLineReadBytesMax: 1_048_576,

  /** The maximum number of characters of log lines in the buffer. Lines are buffered because each write costs work in another thread. */
  logLinesLengthMax: 65_536,
  /** The maximum size of the log's buffer if several processes write into one pipe, in octets (PIPE_BUF of Linux). */
  logSharedBytesMax: 4_096,
  /** The longest time for which a log line is buffered, so that a quiet gateway also shows its lines. */
  logFlushIntervalMs: 1_000,
  /** The maximum size of the log's buffer while standard output is not read. Further lines are dropped. */
  logUnreadBytesMax: 16_777_216,
  /** The time within which similar requests share one line of the log at a terminal. */
  sameRequestMs: 1_000,
  /** How long the process waits for its last log lines before it exits. */
  logCloseTimeoutMs: 1_000,

  /**
   * After SIGTERM, `/readyz` answers 503 for `drainGraceMs`. Then the gateway stops listening, and requests in flight may take
   * `drainDeadlineMs`.
   */
  drainGraceMs: 1_000,
  drainDeadlineMs: 25_000,
  /**
   * How long requests outside of the path of `baseUrl` are counted before the log shows a hint, and the maximum number of paths that are
   * counted.
   */
  basePathHintMs: 60_000,
  basePathHintPathsMax: 16,
  /**
   * The interval at which entries of `X-Forwarded-For` that are no addresses are logged, and how long `/readyz` reports them after the last
   * one.
   */
  forwardedForIntervalMs: 60_000,
  /** The time within which two Ctrl-C count as one, because a Ctrl-C under npm arrives twice: from the terminal and from npm. */
  signalEchoMs: 500,
  /** The interval at which a process under `npx` checks whether its parent still exists. */
  parentPollMs: 500,

  /** The length of each window of a plan. Tests use short windows. */
  windowsMs: calendarWindowsMs,
});

/** The bounds of a part of the gateway: the default bounds or the bounds of a test. */
export type Bounds = { readonly [Name in BoundName]: number } & { readonly windowsMs: WindowsMs };

export type BoundName = Exclude<keyof typeof defaultBounds, 'windowsMs'>;
