import { calendarWindowsMs, type WindowsMs } from './calendar-windows.ts';

/**
 * The limit of every wait, queue, body, header block and retry, with its unit in the name and its reason in the comment. `main.ts`,
 * `server/` and the command line pass these bounds on, so that tests can pass their own. Operators set some limits (body size, ban
 * ladder, address bucket) in the configuration, with defaults in `config/schema/defaults.ts`. `config/config-sizes.ts` limits the
 * size of a configuration.
 */
export const defaultBounds = Object.freeze({
  /** The URI of a request; beyond it 414. RFC 9112 §3 recommends at least 8,000 octets for the request line. */
  targetBytesMax: 8_192,
  /** URI and header fields together, as counted by Node's parser; beyond it 431. */
  headersBytesMax: 32_768,
  /** Header fields of one request; beyond it 431. Node would drop fields beyond its own maximum silently. */
  headersCountMax: 100,
  /** From the first octet of a request to the end of its header; then 408. */
  headersTimeoutMs: 10_000,
  /** From the first octet of a request to the end of its body. */
  requestTimeoutMs: 60_000,
  /** The interval at which Node checks the two timeouts above. */
  connectionsCheckingIntervalMs: 1_000,
  /** From the accepted TCP connection to the end of the TLS handshake; then the client is disconnected. */
  tlsHandshakeTimeoutMs: 10_000,
  /** Failed TLS handshakes are logged at this interval, in one line with their number. */
  tlsFailuresIntervalMs: 10_000,
  /** An expiring certificate is logged at each load and at this interval. */
  certificateNoticeIntervalMs: 86_400_000,
  /** Idle time of a kept-alive client connection. */
  keepAliveTimeoutMs: 65_000,
  /** The announced idle time is shorter, so that clients do not send into a connection that is about to close. */
  keepAliveAnnouncedSeconds: 60,
  /** A client that reads no octet of its response for this time is disconnected. */
  writeTimeoutMs: 30_000,
  /** Client connections of this process. */
  connectionsMax: 10_000,
  /** Client connections from one peer address (IPv6 by /64), so that one client cannot take all of `connectionsMax`. */
  connectionsPerAddressMax: 2_048,
  /** Octets of a body that are read after an early response. A close with unread octets would reset the connection, and the client could lose the response. */
  lingerBytesMax: 262_144,
  /** The time for that. The connection is closed within a second of the response. */
  lingerTimeoutMs: 750,
  /** Pipelined requests on one connection. The last request is answered with `Connection: close`. */
  pipelinedMax: 64,
  /** In a drain idle connections stay open for this time, so that a request that is just arriving is served. */
  drainIdleGraceMs: 500,

  /** CORS preflights of one client address, apart from its requests without a key; beyond it 429. */
  preflightsPerMinuteMax: 600,
  /** How long a browser may cache the response to a preflight. Chromium accepts at most two hours. */
  preflightMaxAgeSeconds: 7_200,

  /** Requests of one client address for the API reference; beyond it 429. A visit takes five requests. */
  docsReadsPerMinuteMax: 600,
  /** Unread octets of all responses with the API reference, shared among addresses (`shares.ts`); beyond it 429. */
  docsUnreadBytesMax: 67_108_864,
  /** A response counts as unread for as long as reading it takes at this rate, or longer if its client reads more slowly. */
  docsReadBytesPerSecond: 100_000,
  /** How long a client may take to read such a response: half a megabyte at 4 KB/s. */
  docsReadTimeoutMs: 120_000,
  /** How often one key may read its own limits (`limitsPath`), which is charged to no quota; beyond it 429. */
  limitsReadsPerMinuteMax: 60,

  /** The deadline of a decision of the store. Later the store counts as away for this request. */
  storeDeadlineMs: 50,
  /** The deadline of a call to the store for a person: to read counts, lift a ban, or reset. */
  storePatientDeadlineMs: 1_000,
  /** The interval at which a store that is away is probed. */
  storeProbeIntervalMs: 200,
  /** A store that fails again within this time after its return has relapsed: fast when idle, too slow under load. */
  storeRelapseMs: 10_000,
  /** Successful probes in a row before a store is back: one, doubled with every relapse, up to this number. */
  storeProbesMax: 32,
  /** The longest pause between two attempts to connect to Redis. */
  storeReconnectMaxMs: 250,
  /** TCP connect to Redis. */
  storeConnectTimeoutMs: 1_000,
  /** A connection that owes replies and is silent for this time is closed, because its server froze or vanished. */
  storeSilenceMaxMs: 1_000,
  /** The interval at which commands that the ACL has refused are tried again. */
  storeAclRetryMs: 10_000,
  /** The interval at which an available store is checked, so that `/readyz` is right without traffic. */
  storeHeartbeatIntervalMs: 1_000,
  /** Failed calls in a row after which the store counts as away. A lost connection counts at once. */
  storeFailuresMax: 3,
  /** How long the first decisions of a process wait for the first connection to Redis. */
  storeStartTimeoutMs: 1_000,
  /** Keys with unusable data in Redis that a process has already warned of. */
  warnedKeysMax: 1_000,
  /** Keys whose last counts and unsent local use a process caches. */
  rememberedKeysMax: 100_000,
  /** Client addresses without a valid key that a process counts on its own. The oldest is forgotten first. */
  rememberedAddressesMax: 100_000,
  /** Requests of one key in one call. */
  requestsPerCallMax: 1_024,
  /** Keys in one call, if one server keeps all keys. The server does no other work during the call. */
  keysPerCallMax: 32,
  /** How long cached counts may refuse without a call to the store. A lifted ban takes effect after that. */
  refusalRememberedMs: 1_000,
  /** How much longer than that the response to a banned key is repeated. */
  banRepeatedMs: 100,
  /** Bans whose end a process will log, and the interval at which it looks for expired bans. */
  loggedBansMax: 10_000,
  banEndIntervalMs: 1_000,
  /**
   * Refusals of one key in one report, and the share of the refusals left before a ban that a process may hold unreported. With a
   * hundred or fewer left each is reported at once, so that several processes together ban at the threshold.
   */
  strikesPerReportMax: 50,
  strikesHeldShareMax: 0.01,
  /** The interval at which local decisions are reported if no call carried them. */
  reportIntervalMs: 1_000,
  /** Keys of one such report. */
  keysPerReportMax: 500,
  /** The whole last report at shutdown. */
  storeCloseTimeoutMs: 1_000,

  /** Secrets of one key of the directory. A rotation needs two; a careless integration has more. */
  directorySecretsPerKeyMax: 16,
  /** How long a key of the directory is cached. Changes take effect at once. */
  directoryCachedMs: 60_000,
  /**
   * Cached keys of the directory, and their octets: about 640 for most keys, 100,000 for a key with many operations. The key that
   * was read first is dropped, and read again with its next request.
   */
  directoryCachedKeysMax: 100_000,
  directoryCachedBytesMax: 67_108_864,
  /** Cached secrets of these keys, about 930 octets each. A full cache is cleared, and digests are computed again. */
  directoryCachedSecretsMax: 50_000,
  /**
   * How long, and for how many secrets, a process caches that a secret has no usable key. Also the pause before the next attempt
   * to read a key again while Redis is away.
   */
  directoryAbsentMs: 1_000,
  directoryAbsentMax: 10_000,
  /** Look-ups in flight, and look-ups in flight and waiting, shared among client addresses (`shares.ts`); beyond it 503. */
  directoryLookUpsMax: 128,
  directoryLookUpsWaitingMax: 4_096,
  /** Look-ups that follow the last ones sooner wait for this time and are then made together. */
  directoryLookUpRoundMs: 4,
  /** How often a request reads its key again, because the key changed while the request was decided. */
  directoryRereadsMax: 3,
  /** Recently changed keys that a process remembers, so that an older look-up does not bring back the old key. */
  directoryOwnChangesMax: 10_000,
  /**
   * The record of a new key must be written within this time after its id was listed. So an entry without a record that is older
   * than the second figure is left over. The difference allows for the clocks of the servers of a Cluster.
   */
  directoryCreatedWithinMs: 60_000,
  directoryLeftoverMs: 600_000,
  /** Possibly left-over ids and digests that a process checks at once. */
  directoryTidiedAtOnceMax: 16,
  /** The deadline of a look-up in the directory. Later the store counts as away for this request. */
  directoryLookUpDeadlineMs: 250,
  /** Keys of the directory without Redis. */
  directoryKeysInMemoryMax: 100_000,

  /** TCP connect to a target with the TLS handshake, if any. An upstream may set its own value of this, the next, and `upstreamTotalTimeoutMs`. */
  connectTimeoutMs: 2_000,
  /** From the sent request to the first octet of the response. */
  upstreamHeadersTimeoutMs: 30_000,
  /** Between two pieces of a response's body. */
  upstreamBodyIdleTimeoutMs: 30_000,
  /** The whole exchange with the upstream, including retries. */
  upstreamTotalTimeoutMs: 120_000,
  /** Connections to one target, and therefore its requests in flight, shared among keys (`shares.ts`). */
  connectionsPerTargetMax: 256,
  /** Requests that wait for a connection to one target, shared among keys in the same way; beyond it 503. A single key gets half. */
  queuedPerTargetMax: 4_096,
  /** WebSockets at one target, apart from its requests, shared among keys (`shares.ts`); beyond it 503. */
  tunnelsPerTargetMax: 4_096,
  /** WebSockets of one key in this process; beyond it 503 by the client's fault. */
  tunnelsPerKeyMax: 256,
  /** Octets of all WebSockets of this process in one turn of the event loop, in both directions. Keys take turns. */
  tunnelBytesPerTurnMax: 65_536,
  /** A WebSocket without an octet in either direction for this time is cut. Most clients and servers ping every minute. */
  tunnelIdleTimeoutMs: 600_000,
  /** The interval at which the cached keys of open WebSockets are checked, as after every reload. */
  tunnelCheckIntervalMs: 1_000,
  /** The interval at which keys of the directory are read again for open WebSockets, and for how many at once. A thousand take 0.1 to 0.3 s. */
  tunnelReadIntervalMs: 5_000,
  tunnelsReadAtOnce: 16,
  /** WebSockets that are checked in one turn of the event loop: at most a millisecond. */
  tunnelsCheckedPerTurn: 256,
  /** Header block of a response with the interim responses before it; also all its trailers. */
  upstreamHeadersBytesMax: 65_536,
  /** Fields of one response, and of its trailers. */
  upstreamFieldsCountMax: 256,
  /** Chunk extensions of one response in total. They are skipped, and backends do not send any. */
  chunkExtensionsBytesMax: 4_096,
  /** Interim responses (1xx) before one response of a target; beyond it 502. */
  interimResponsesMax: 16,
  /** The read buffer of a connection to a target. */
  upstreamReadBytesMax: 16_384,
  /** Idle time of a connection to a target if the backend does not announce one. */
  upstreamIdleTimeoutMs: 4_000,
  /** The idle time is half of what the backend announces, at most this. */
  upstreamIdleTimeoutMaxMs: 60_000,
  /** The interval of lookups of the upstream's host name. */
  resolveIntervalMs: 2_000,
  /**
   * The pause between two health checks of a target, and the timeout of one check. A target that hangs is found silent after a
   * pause and two checks, 900 ms, so that new requests avoid it within a second.
   */
  healthPauseMs: 200,
  healthTimeoutMs: 350,
  /** Attempts of one request, including the first. */
  attemptsMax: 3,
  /** Full-jitter pause before attempt n: random between 0 and min(cap, base × 2^(n−1)). */
  retryBaseMs: 10,
  retryCapMs: 200,
  /** In each window retries are at most this share of the requests, and a few more, so that a quiet gateway can retry. */
  retryBudgetRatio: 0.2,
  retryBudgetFloor: 10,
  retryBudgetWindowMs: 10_000,
  /** The part of a body that is read before the request takes a connection to a target: all of a small body, so that a slow client takes no connection. */
  collectedBodyBytesMax: 65_536,
  /** All collected bodies of this process, shared among keys (`shares.ts`); beyond it 503. */
  collectedBodiesBytesMax: 67_108_864,
  /**
   * The slowest rate at which a client may send a body or read a response. The time begins with the grace period. Each octet buys time at this
   * rate, up to `clientAheadMaxMs`, because a mobile client may lose its network for a moment.
   */
  clientBytesPerSecondMin: 500,
  clientGraceMs: 5_000,
  clientAheadMaxMs: 30_000,
  /** The interval of checks of exchanges, connections to targets and waits; shorter, down to the second figure, if an upstream has short timeouts. */
  sweepIntervalMs: 1_000,
  sweepIntervalMinMs: 20,
  /** How long exchanges may take after the forwarder is closed. */
  upstreamCloseTimeoutMs: 1_000,

  /** Connections to the admin listener, shared among client addresses (`shares.ts`). */
  adminConnectionsMax: 256,
  /**
   * Admin connections that begin in a second, and at once after a pause. Later connections wait unread, and client addresses take
   * turns. A TLS handshake takes 0.2 to 1 ms.
   */
  adminConnectionsPerSecondMax: 250,
  adminConnectionsAtOnceMax: 16,
  /** Waiting requests of one admin connection; one more cuts the connection. Browsers and curl send one at a time. */
  adminPipelinedMax: 4,
  /**
   * Turns of the admin listener in a second, and at once after a pause. In a turn, one request begins, or octets of one connection
   * are parsed. Client addresses take turns. A request costs 40 to 75 µs, and parsing up to 100 µs. A page loads 35 files at once.
   */
  adminTurnsPerSecondMax: 1_000,
  adminTurnsAtOnceMax: 16,
  /** In its turn the parser reads slices until this time is over, at least one slice. A slice with chunks of one octet takes 0.06 ms. */
  adminSliceBytes: 512,
  adminParsingMs: 0.05,
  /** How long the text of `/metrics` is cached. */
  metricsKeptMs: 1_000,
  /** Header fields and URI of an admin request, and its URI alone. */
  adminHeadersBytesMax: 16_384,
  adminTargetBytesMax: 2_048,
  /** Requests to the admin API in flight, shared among tokens (`shares.ts`); beyond it 503. */
  adminRequestsMax: 64,
  /** The deadline of an admin request; then 503. Each of its parts has a shorter deadline. */
  adminResponseTimeoutMs: 10_000,
  /** A JSON body of an admin request: two thousand operations of a key; the members of all its objects and lists; the time to arrive. More gets 413 or 408. */
  adminBodyBytesMax: 65_536,
  adminBodyMembersMax: 4_096,
  adminBodyTimeoutMs: 5_000,
  /** Tokens with a request in progress, one request each; then the same in the reading thread. */
  adminTurnsMax: 16,
  readingTurnsMax: 4,
  /** The reading thread: its idle time, its heap, and the part of the heap for young objects. */
  readingThreadIdleMs: 60_000,
  readingThreadHeapMebibytes: 512,
  readingThreadYoungMebibytes: 16,
  /** A longer request replaces the reading thread. */
  readingStuckMs: 30_000,
  /** A question of the reading thread to the thread that serves keys. */
  readingCallTimeoutMs: 2_000,
  /** How long a response that depends only on the settings is cached. */
  readingFixedKeptMs: 60_000,
  /** Records of a large question that the serving thread answers in one turn of its event loop. */
  readingAskedAtOnceMax: 50,
  /** After an answer the serving thread serves keys for this many times the duration of the answer, at most for the second figure. */
  readingPauseFactor: 4,
  readingPauseMaxMs: 20,
  /** A larger response is written in pieces with a pause after each, so that requests of keys are served in between. A token has one such response in progress. */
  adminLargeResponseBytes: 262_144,
  adminPieceBytes: 131_072,
  adminPiecePauseMs: 1,
  /**
   * The rest of a token after each request. Outside of the reading thread it also rests four times
   * as long as its requests kept the event loop busy, once it is ahead by the third figure. So four fifths are left for others.
   */
  adminTurnPauseMs: 2,
  adminRestFactor: 5,
  adminAheadMaxMs: 250,
  /** Changes by one token in a minute on each process; beyond it 429. Also the number of counted tokens. */
  adminChangesPerMinuteMax: 600,
  adminTokensCountedMax: 1_000,
  /** Attempts at a change of a key when others change the key at the same time; then 409. */
  directoryChangeAttemptsMax: 10,
  /** How long an `Idempotency-Key` is kept: a day. */
  idempotencyKeptMs: 86_400_000,
  /** Keys of one import, its body and members, and the keys that are written at once. */
  importKeysMax: 500,
  importBytesMax: 524_288,
  importMembersMax: 32_768,
  importKeysAtOnceMax: 25,
  /** The latest end of a grant: 400 days ahead. */
  grantMaxMs: 34_560_000_000,
  /** Wrong tokens of one client address in a minute with 401; further ones get 429. */
  adminWrongTokensPerMinuteMax: 10,
  /** Client addresses whose wrong tokens are counted. The oldest is forgotten first. */
  adminGuessersMax: 10_000,
  /** Wrong tokens are logged at this interval, in one line with their number. */
  adminWrongTokensIntervalMs: 10_000,
  /** Keys that one list with a state filter examines before it returns a partial result with a cursor. */
  adminKeysExaminedMax: 10_000,
  /** Rows of one response with the usage of a key: 8 days of minutes. */
  adminUsageRowsMax: 11_520,

  /** The time to read the records of a plan's keys for its distribution, and how long that is cached: it reads every minute of every active key. */
  planDistributionTimeoutMs: 5_000,
  planDistributionKeptMs: 30_000,
  /**
   * A simulation: the time of one part, in which keys are read and replayed one at a time; its body, with edits of all windows of
   * 10,000 keys; the minutes of keys in the cache (28 octets each), and how long they are cached.
   */
  simulationTimeoutMs: 2_000,
  simulationBytesMax: 1_048_576,
  simulationMembersMax: 65_536,
  simulationMinutesKeptMax: 2_000_000,
  simulationKeptMs: 60_000,

  /** The interval at which counts are added to the usage record, and the parts into which the keys are divided. */
  usageFlushIntervalMs: 10_000,
  usageSlicesPerFlush: 100,
  /** The deadline of a call to the usage record. A batch whose call takes longer is sent again when the store replies, and added once. */
  usageCallTimeoutMs: 1_000,
  /** Fields of one such call, which keeps Redis busy for 3 ms. */
  usageFieldsPerCallMax: 250,
  /** Unsent counts of all keys, about 60 octets each. Further counts are not recorded. */
  usageUnsentCountsMax: 500_000,
  /** Operations of one key that a process records by name in a day. Further operations are counted together. */
  usageOperationsPerKeyMax: 100,
  /** Secrets of one key whose last use a process records in a day. */
  usageSecretsPerKeyMax: 8,
  /** Flushes without a request after which a process forgets a key. */
  usageIdleRoundsMax: 30,
  /**
   * Keys in memory, about 3 kB each. With more keys, a key is forgotten as soon as its counts are sent, and counts are sent more
   * often: all once while as many new keys arrive. So at most three times as many keys are in memory.
   */
  usageKeysMax: 20_000,
  /** Keys in the index of recently active keys, and the maximum age of an entry. */
  usageActiveKeysMax: 10_000,
  usageActiveNotedMs: 60_000,
  /** Without Redis: the most recently active keys, whose last 24 hours are kept. */
  usageKeysInMemoryMax: 1_000,
  /** The interval at which the memory of Redis is checked, and the share of its `maxmemory` beyond which usage is not recorded. */
  usageMemoryCheckIntervalMs: 10_000,
  usageMemoryShareMax: 0.7,
  /** The pause between two keys whose past days are added to their totals, and how many keys may wait for that. */
  usageTotalsPauseMs: 20,
  usageTotalsWaitingMax: 100_000,
  /** Records that are read or written at once. Further records wait, so that Redis serves others in between. */
  usageReadsPerTurnMax: 250,
  /** How long the process waits for its last batches before it exits. */
  usageCloseTimeoutMs: 2_000,

  /** The interval at which a process publishes its state, and how long a stopped process is listed. */
  presenceIntervalMs: 1_000,
  presenceExpiryMs: 5_000,
  /** Listed processes, about a kilobyte each, and listed targets of one upstream. */
  presenceProcessesMax: 500,
  presenceTargetsMax: 64,
  /** The period of a process's rates and percentiles. */
  recentFiguresMs: 10_000,
  /** Failed requests are counted over this time, and reported from this number and share of requests. */
  failuresShownMs: 60_000,
  failingRequestsMin: 5,
  failingShareMin: 0.01,
  /** Changes that are kept, and for how long: 90 days. */
  changesMax: 10_000,
  changesKeptMs: 7_776_000_000,
  /** Several processes report the same change within this time. */
  changesMergedWithinMs: 60_000,
  /** Kept characters of the reason for a failed reload. */
  changeErrorCharsMax: 1_000,
  /** Kept characters of a changed member, as JSON, and members of one change that a command reports. */
  changeMemberCharsMax: 200,
  changeMembersMax: 12,
  /** The description of one reload: texts, characters of each, and named keys. */
  editTextsMax: 20,
  editTextCharsMax: 200,
  editedKeysNamedMax: 5,
  /** Changes in one response. */
  changesPerPageMax: 200,
  /** The newest changes, in which earlier limits of a key are searched. */
  limitChangesReadMax: 2_000,
  /** Processes that are counted as reporters of one change or event. */
  listReportsMax: 500,
  /** Events that are kept, and for how long: 7 days. */
  eventsMax: 2_000,
  eventsKeptMs: 604_800_000,
  /** Several processes report the same event within this time. */
  eventsMergedWithinMs: 10_000,
  /** Events in one response. */
  eventsPerPageMax: 200,
  /**
   * Events of one kind that a process reports at once, and the interval of further ones. Further events are counted in one event
   * after the first pause. The pause doubles up to the second figure while there are more.
   */
  eventsAtOnceMax: 20,
  eventsRefillMs: 4_000,
  eventsSummaryPauseMs: 1_000,
  eventsSummaryPauseMaxMs: 60_000,

  /**
   * The pause before a worker that has ended is replaced. It doubles, up to the second figure, with each worker that did not live
   * for the third, so that failing workers do not take a processor from the others.
   */
  workerPauseMs: 100,
  workerPauseMaxMs: 10_000,
  workerSteadyMs: 60_000,
  /** From the start of a worker until it listens; then it is killed. With 100,000 keys it takes a second, on a busy machine ten. */
  workerStartTimeoutMs: 120_000,
  /** The interval at which a worker reports its figures, and the silence after which it is killed and replaced, because its event loop hangs. */
  workerReportIntervalMs: 1_000,
  workerSilenceMaxMs: 30_000,
  /** How long `/metrics` waits for each worker. Then it has the worker's previous metrics. */
  workerReplyTimeoutMs: 1_000,
  /** How long workers may take to end after the deadline of a drain. */
  workerEndTimeoutMs: 3_000,
  /** The smallest share of connections to a target for one worker. */
  workerConnectionsPerTargetMin: 16,

  /** The interval at which the content of the configuration files is compared. An edit takes effect after two comparisons. */
  configPollIntervalMs: 250,
  /** A longer load is logged. */
  configLoadSlowMs: 2_000,
  /**
   * How long a load continues after its files have changed, because the newer text may be the repair. The second figure is for a
   * load that parses a long text. Both double with each cancelled load.
   */
  configOutdatedLoadMs: 2_000,
  configOutdatedParseMs: 500,
  /**
   * The pause before a load is repeated after its thread has died, for example for lack of memory. It doubles up to the second
   * figure, because each load occupies a processor for seconds.
   */
  configRetryPauseMs: 10_000,
  configRetryPauseMaxMs: 600_000,
  /** How long the idle loader thread is kept. */
  configThreadIdleMs: 60_000,
  /** The heap of the loader thread, so that a configuration cannot fill the gateway's memory. The largest keys file takes 1,280. */
  configThreadHeapMebibytes: 1_536,
  /** The part of that heap for young objects. V8's default takes 45 MiB more with 100,000 keys, and as much time. */
  configThreadYoungMebibytes: 16,
  /** A file that changed this recently is read again, because two edits may have the same time stamp: within 10 ms on Linux, within 2 s on some file systems. */
  configSettledAfterMs: 100,
  configSettledCoarseMs: 3_000,
  /**
   * How long the command line waits for one other process that edits the keys (an edit takes at most a second), for all processes
   * before it, and the interval of its attempts.
   */
  editLockWaitMs: 10_000,
  editLockQueueMs: 300_000,
  editLockPollMs: 20,

  /** The lookups of all host names of upstreams in `tollgate check`, and the connection of `tollgate init` to its upstream. */
  checkLookupTimeoutMs: 2_000,

  /** How long a command waits for a response of the admin API (longer than `adminResponseTimeoutMs`), and the longest response. */
  adminCallTimeoutMs: 15_000,
  adminReplyBytesMax: 67_108_864,
  /** The longest secret that `tollgate keys whoami` reads. A header field is not longer. */
  secretInputCharsMax: 16_384,
  /** How often `tollgate keys import --directory` repeats a part, and its pause: together over a minute, after which changes are counted anew. */
  importRetries: 15,
  importRetryMs: 5_000,
  /** The interval at which `tollgate top` reads and draws the state, and the silence that it reports. */
  topIntervalMs: 1_000,
  topSilenceShownMs: 3_000,
  /** The shortest interval at which it reads the keys, and the pause after a slow read, as a multiple of its duration. */
  topKeysIntervalMs: 5_000,
  topKeysPauseFactor: 20,
  /** Keys of each of its two lists. */
  topKeysMax: 10,
  /** The part of a log line that `tollgate why` reads. The gateway's lines are shorter. */
  logLineReadBytesMax: 1_048_576,

  /** Log lines are collected up to this many characters, because each write is work for another thread. */
  logLinesLengthMax: 65_536,
  /** The same in octets for several processes that write into one pipe: PIPE_BUF of Linux. */
  logSharedBytesMax: 4_096,
  /** The longest time for which a line is held back, so that a quiet gateway shows its lines too. */
  logFlushIntervalMs: 1_000,
  /** The buffer of the log while standard output is not read. Further lines are dropped. */
  logUnreadBytesMax: 16_777_216,
  /** At a terminal, similar requests within this time share a line. */
  sameRequestMs: 1_000,
  /** How long the process waits for its last log lines before it exits. */
  logCloseTimeoutMs: 1_000,

  /** After SIGTERM: how long `/readyz` answers 503 before accepting stops, and how long requests in flight may then take. */
  drainGraceMs: 1_000,
  drainDeadlineMs: 25_000,
  /** How long requests below another path than that of `baseUrl` are counted before the log has a hint, and how many paths. */
  basePathHintMs: 60_000,
  basePathHintPathsMax: 16,
  /** A Ctrl-C under npm arrives twice, from the terminal and from npm. Within this time it counts once. */
  signalEchoMs: 500,
  /** Under `npx`: the interval at which the process checks whether its parent still exists. */
  parentPollMs: 500,

  /** The length of each window of a plan. Tests use short windows. */
  windowsMs: calendarWindowsMs,
});

/** The bounds of a part of the gateway: the defaults or those of a test. */
export type Bounds = { readonly [Name in BoundName]: number } & { readonly windowsMs: WindowsMs };

export type BoundName = Exclude<keyof typeof defaultBounds, 'windowsMs'>;
