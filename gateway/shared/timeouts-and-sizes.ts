import { calendarWindowsMs, type WindowsMs } from './calendar-windows.ts';

/**
 * The bounds of every wait, queue, body, header block and retry, each with its unit in the name and its reason beside it.
 * They are handed in from here (`../main.ts`, `../server/gateway.ts`, `server/`), so that a test can pass its own. What operators tune (body size, ban ladder, address bucket) is in the configuration instead; its
 * defaults are in `config/schema/defaults.ts`. How large a configuration may be is in `config/config-sizes.ts`.
 */
export const defaultBounds = Object.freeze({
  /** The URI of a request; a longer one is answered 414. RFC 9112 §3 recommends at least 8,000 octets for the request line. */
  targetBytesMax: 8_192,
  /** URI and header fields together, as Node's parser counts them; beyond it 431. Larger than the maximum of the URI alone. */
  headersBytesMax: 32_768,
  /** Header fields of one request; more are answered 431. Node's own maximum would drop the others silently. */
  headersCountMax: 100,
  /** From the first byte of a request to the end of its header; a slower client is answered 408. */
  headersTimeoutMs: 10_000,
  /** From the first byte of a request to the end of its body. */
  requestTimeoutMs: 60_000,
  /** How often Node looks for connections past those two limits. */
  connectionsCheckingIntervalMs: 1_000,
  /** From the accepted TCP connection to the end of the TLS handshake; a slower client is disconnected. */
  tlsHandshakeTimeoutMs: 10_000,
  /** How often failed TLS handshakes are logged: their number, one line for all. */
  tlsFailuresIntervalMs: 10_000,
  /** How often an expiring certificate is logged, beside once at each load. */
  certificateNoticeIntervalMs: 86_400_000,
  /** Idle time of a kept-alive client connection. */
  keepAliveTimeoutMs: 65_000,
  /** The idle time that the client is told: shorter, so that it does not send into a connection that is just being closed. */
  keepAliveAnnouncedSeconds: 60,
  /** A client that reads nothing of its response for this long is disconnected. */
  writeTimeoutMs: 30_000,
  /** Client connections of this process. */
  connectionsMax: 10_000,
  /** Client connections from one peer address, IPv6 by /64: one client cannot take all of `connectionsMax`. */
  connectionsPerAddressMax: 2_048,
  /** Bytes of a body that are read after it was answered early: with unread bytes a close would reset the connection, and the client could lose the response. */
  lingerBytesMax: 262_144,
  /** How long that may take: within a second of the response the connection is closed. */
  lingerTimeoutMs: 750,
  /** Pipelined requests on one connection; the last of them is answered with `Connection: close`. */
  pipelinedMax: 64,
  /** In a drain an idle connection stays open for this long, so that a request that is just arriving is served. */
  drainIdleGraceMs: 500,

  /** CORS preflights of one client address in a minute, apart from its requests without a key; beyond it 429. */
  preflightsPerMinuteMax: 600,
  /** How long a browser may remember the response to one: Chromium accepts two hours at most. */
  preflightMaxAgeSeconds: 7_200,

  /** Requests of one client address for the API reference in a minute: a visit is five; beyond it 429. */
  docsReadsPerMinuteMax: 600,
  /** All responses with the API reference that have not been read to their end, shared among addresses: see `shares.ts`; beyond it 429. */
  docsUnreadBytesMax: 67_108_864,
  /** One counts as unread for as long as reading it takes at this pace, and longer while the client reads more slowly. */
  docsReadBytesPerSecond: 100_000,
  /** How long a client may take to read one: half a megabyte at 4 KB/s. */
  docsReadTimeoutMs: 120_000,
  /** How often one key may read its own limits (`limitsPath`) in a minute, which is charged to no quota; beyond it 429. */
  limitsReadsPerMinuteMax: 60,

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
  /** How often it is tried again whether a Redis user may run what its ACL refused. */
  storeAclRetryMs: 10_000,
  /** A store that is there is asked this often whether it still is, so that `/readyz` is true without traffic. */
  storeHeartbeatIntervalMs: 1_000,
  /** Failed calls in a row after which the store counts as away; a lost connection counts at once. */
  storeFailuresMax: 3,
  /** The first decisions of a process wait this long for the first contact with Redis. */
  storeStartTimeoutMs: 1_000,
  /** Keys that a process remembers to have warned of: those with nothing usable in the directory, or in place of their counts. */
  warnedKeysMax: 1_000,
  /** Keys whose last seen counts and unsent local use a process remembers. */
  rememberedKeysMax: 100_000,
  /** Client addresses without a valid key that a process counts on its own; the one counted first is forgotten. */
  rememberedAddressesMax: 100_000,
  /** Requests of one key decided by one call. */
  requestsPerCallMax: 1_024,
  /** Keys decided by one call, where one server keeps all: it does nothing else meanwhile. */
  keysPerCallMax: 32,
  /** How long counts seen in the store may refuse without asking it again: a lifted ban shows after that. */
  refusalRememberedMs: 1_000,
  /** A banned key is told the same for this long, on top of that. */
  banRepeatedMs: 100,
  /** Bans that a process has logged and whose end it will log; and how often it looks for those that have ended. */
  loggedBansMax: 10_000,
  banEndIntervalMs: 1_000,
  /**
   * Refusals of one key that are reported in one call, and the share of those left before a ban that a process may hold
   * unreported. With a hundred left or fewer each is reported at once, so several processes together ban at the threshold.
   */
  strikesPerReportMax: 50,
  strikesHeldShareMax: 0.01,
  /** How often what a process decided on its own is reported when no call carried it. */
  reportIntervalMs: 1_000,
  /** Keys of one such report. */
  keysPerReportMax: 500,
  /** The last report at shutdown, whole. */
  storeCloseTimeoutMs: 1_000,

  /** Secrets of one key of the directory: a rotation needs two, an integration that is never tidied up has more. */
  directorySecretsPerKeyMax: 16,
  /** For how long a process uses what it has read of a key of the directory, before it reads it again. Changes are noticed at once. */
  directoryCachedMs: 60_000,
  /**
   * Keys of the directory that a process remembers, and the octets that they take, about 640 for most; one with many
   * operations takes 100,000. The key that it read longest ago is forgotten, and read again from Redis with its next request.
   */
  directoryCachedKeysMax: 100_000,
  directoryCachedBytesMax: 67_108_864,
  /** Secrets of theirs whose digest it need not compute again: about 930 octets each. Beyond it all are computed anew. */
  directoryCachedSecretsMax: 50_000,
  /**
   * For how long it remembers that a secret is nobody's or its key is refused, and of how many; and, while Redis is away, how
   * long it waits before it tries once more to read a key again.
   */
  directoryAbsentMs: 1_000,
  directoryAbsentMax: 10_000,
  /** Look-ups in flight, and those with the ones that wait for them, shared among client addresses: see `shares.ts`. Beyond it 503. */
  directoryLookUpsMax: 128,
  directoryLookUpsWaitingMax: 4_096,
  /** Look-ups that come sooner after the last ones wait so long, and are then made together. */
  directoryLookUpRoundMs: 4,
  /** How often a request reads its key again because it was changed while the request was being decided. */
  directoryRereadsMax: 3,
  /** Keys that a process remembers to have changed: a look-up that began before its change must not bring the old key back. */
  directoryOwnChangesMax: 10_000,
  /**
   * Within this time after its id was listed the record of a new key must be written; later it is refused. So an entry of
   * the list or the index without a record is left over when it is older than the second figure. The difference is for
   * servers of a Cluster whose clocks differ.
   */
  directoryCreatedWithinMs: 60_000,
  directoryLeftoverMs: 600_000,
  /** Ids and digests that a process looks at in one moment because they may be left over. */
  directoryTidiedAtOnceMax: 16,
  /** Looking up a secret in the directory; past it the store counts as away for this request. */
  directoryLookUpDeadlineMs: 250,
  /** Without Redis: keys of the directory. */
  directoryKeysInMemoryMax: 100_000,

  /** TCP connect to a target with the handshake of TLS, if any. An upstream may set this timeout, the next one and `upstreamTotalTimeoutMs` for itself. */
  connectTimeoutMs: 2_000,
  /** From the sent request to the first byte of the response. */
  upstreamHeadersTimeoutMs: 30_000,
  /** Between two pieces of a response's body. */
  upstreamBodyIdleTimeoutMs: 30_000,
  /** The whole exchange with the upstream, retries included. */
  upstreamTotalTimeoutMs: 120_000,
  /** Connections to one target, and therefore requests in flight at it. Shared among keys: see `shares.ts`. */
  connectionsPerTargetMax: 256,
  /** Requests that wait for a connection to one target, shared among keys in the same way; beyond it 503. A key alone has half. */
  queuedPerTargetMax: 4_096,
  /** WebSockets at one target, apart from its requests, shared among keys: see `shares.ts`; beyond it 503. */
  tunnelsPerTargetMax: 4_096,
  /** WebSockets of one key in this process; beyond it 503 by the client's fault. */
  tunnelsPerKeyMax: 256,
  /** What all WebSockets of this process move in one turn of the event loop, both ways; keys take turns. */
  tunnelBytesPerTurnMax: 65_536,
  /** A WebSocket in which neither side moved a byte for this long is cut; most clients and servers ping every minute. */
  tunnelIdleTimeoutMs: 600_000,
  /** How often the keys of open WebSockets are looked at in memory, as at every reload: by then their end is seen. */
  tunnelCheckIntervalMs: 1_000,
  /** How often those of the directory are read again, and of how many WebSockets at once: a thousand take 0.1 to 0.3 s. */
  tunnelReadIntervalMs: 5_000,
  tunnelsReadAtOnce: 16,
  /** WebSockets that are looked at in one turn of the event loop: a millisecond or less. */
  tunnelsCheckedPerTurn: 256,
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

  /** Connections to the admin listener, shared among client addresses: see `shares.ts`. */
  adminConnectionsMax: 1_024,
  /** Requests of one connection there that wait for their response; with one more it is cut. Browsers and curl send one at a time. */
  adminPipelinedMax: 4,
  /**
   * Requests of all clients there that are begun in a second, and at once after a pause; later ones wait, and client
   * addresses take turns. One costs 40 to 75 µs, so a flood takes at most 8 % of a processor. A page loads 35 files at once.
   */
  adminRequestsPerSecondMax: 1_000,
  adminRequestsAtOnceMax: 16,
  /** How long the text of `/metrics` is kept for whoever asks again. */
  metricsKeptMs: 1_000,
  /** Header fields of a request there, with its URI, and the URI alone. */
  adminHeadersBytesMax: 16_384,
  adminTargetBytesMax: 2_048,
  /** Requests to the admin API under way, shared among tokens as `shares.ts` says; beyond it 503. */
  adminRequestsMax: 64,
  /** How long one may take before it is answered 503: each part of it has a shorter deadline of its own. */
  adminResponseTimeoutMs: 10_000,
  /**
   * A JSON body there: two thousand operations of a key; the members of all its objects and lists; and how long it may take to
   * arrive. Beyond them 413 and 408.
   */
  adminBodyBytesMax: 65_536,
  adminBodyMembersMax: 4_096,
  adminBodyTimeoutMs: 5_000,
  /** Tokens whose requests are served at once, one of each token; the same in the reading thread. */
  adminTurnsMax: 16,
  readingTurnsMax: 4,
  /**
   * The reading thread: how long it is kept without a request, its heap, and the part of that for young objects; after how long
   * one request counts as stuck, and the thread is replaced; how long a question to the thread that serves keys may take; for how
   * long a response that depends on the settings alone is kept.
   */
  readingThreadIdleMs: 60_000,
  readingThreadHeapMebibytes: 512,
  readingThreadYoungMebibytes: 16,
  readingStuckMs: 30_000,
  readingCallTimeoutMs: 2_000,
  readingFixedKeptMs: 60_000,
  /** Of a question about many records, so many are answered in one turn of the event loop of the thread that serves keys. */
  readingAskedAtOnceMax: 50,
  /** That thread serves keys for this many times as long as it took for an answer, at most so long, before it gives another one. */
  readingPauseFactor: 4,
  readingPauseMaxMs: 20,
  /**
   * A response from here on is written piece by piece, with a pause after each piece, so that requests of keys are served in
   * between; a token has one of them under way.
   */
  adminLargeResponseBytes: 262_144,
  adminPieceBytes: 131_072,
  adminPiecePauseMs: 1,
  /**
   * A token rests after each request, and after each piece of a body. Beside the reading thread it also rests four times as long
   * as the event loop was busy while its requests had their turn, once it is ahead of that: four fifths are for others.
   */
  adminTurnPauseMs: 2,
  adminRestFactor: 5,
  adminAheadMaxMs: 250,
  /** Changes that one token may make in a minute, on each process; beyond it 429. And tokens that are counted. */
  adminChangesPerMinuteMax: 600,
  adminTokensCountedMax: 1_000,
  /** How often a change of a key is begun again because somebody else changed the key meanwhile; then 409. */
  directoryChangeAttemptsMax: 10,
  /** For how long an `Idempotency-Key` is remembered: a day. */
  idempotencyKeptMs: 86_400_000,
  /** Keys of one import, its body and members, and how many of them are written at once. */
  importKeysMax: 500,
  importBytesMax: 524_288,
  importMembersMax: 32_768,
  importKeysAtOnceMax: 25,
  /** How far ahead the end of a grant may be: 400 days. */
  grantMaxMs: 34_560_000_000,
  /** Wrong tokens of one client address in a minute that are answered 401; further ones 429. */
  adminWrongTokensPerMinuteMax: 10,
  /** Client addresses whose wrong tokens are remembered; the one that began first is forgotten. */
  adminGuessersMax: 10_000,
  /** How often wrong tokens are logged: their number, one line for all. */
  adminWrongTokensIntervalMs: 10_000,
  /** Keys that one list filtered by state looks at before it answers with what it found and where to go on. */
  adminKeysExaminedMax: 10_000,
  /** Rows of one answer about the usage of a key: 8 days of minutes. */
  adminUsageRowsMax: 11_520,

  /**
   * How long the records of a plan's keys are read for its distribution, and how long that is kept for whoever asks again:
   * it reads every minute of every active key.
   */
  planDistributionTimeoutMs: 5_000,
  planDistributionKeptMs: 30_000,
  /**
   * How long one part of a simulation takes, in which a key is read and replayed at a time; its body: edits of all windows of
   * 10,000 keys, as many as can have a record; and how many minutes of keys that were read are kept for the next one (28 octets
   * each), and how long after it.
   */
  simulationTimeoutMs: 2_000,
  simulationBytesMax: 1_048_576,
  simulationMembersMax: 65_536,
  simulationMinutesKeptMax: 2_000_000,
  simulationKeptMs: 60_000,

  /** How often what was counted of a key is added to the usage record, and into how many parts its keys are divided meanwhile. */
  usageFlushIntervalMs: 10_000,
  usageSlicesPerFlush: 100,
  /** One call for the usage record. A batch whose call takes longer is sent again when the store answers, and added once. */
  usageCallTimeoutMs: 1_000,
  /** Fields of one such call: adding to so many takes Redis 3 ms, in which it serves nobody else. */
  usageFieldsPerCallMax: 250,
  /** Numbers that were counted and not sent yet, of all keys: about 60 octets each. Beyond it, new ones are not recorded. */
  usageUnsentCountsMax: 500_000,
  /** Operations of one key that a process records by name in a day; further ones are counted together. */
  usageOperationsPerKeyMax: 100,
  /** Secrets of one key of which a process records in a day when they were used last. */
  usageSecretsPerKeyMax: 8,
  /** After so many flushes without a request a process forgets a key. */
  usageIdleRoundsMax: 30,
  /**
   * Beyond so many keys, about 3 kB each, each is forgotten as soon as all of it is sent. And the keys are sent more often: all
   * of them once while as many more come. So at most three times as many are remembered, however fast new ones come.
   */
  usageKeysMax: 20_000,
  /** Keys in the index of those that were active last; an entry is at most this old. */
  usageActiveKeysMax: 10_000,
  usageActiveNotedMs: 60_000,
  /** Without Redis: keys whose last 24 hours are kept, those that were active last. */
  usageKeysInMemoryMax: 1_000,
  /** How often Redis is asked how full it is, and the share of its `maxmemory` beyond which nothing is recorded. */
  usageMemoryCheckIntervalMs: 10_000,
  usageMemoryShareMax: 0.7,
  /** Between two keys whose past days are added to their totals, and how many may wait for that. */
  usageTotalsPauseMs: 20,
  usageTotalsWaitingMax: 100_000,
  /** Records that are read or written at once: more are asked for in turn, so that Redis serves others in between. */
  usageReadsPerTurnMax: 250,
  /** How long the end of the process waits for the last batches. */
  usageCloseTimeoutMs: 2_000,

  /** How often a process publishes its own state, and for how long one that stopped is still listed. */
  presenceIntervalMs: 1_000,
  presenceExpiryMs: 5_000,
  /** Processes that are listed, and targets that one lists of an upstream: a process takes about a kilobyte. */
  presenceProcessesMax: 500,
  presenceTargetsMax: 64,
  /** The time that a process's rates and percentiles are of. */
  recentFiguresMs: 10_000,
  /**
   * Requests that failed are counted over this time. They are reported from so many failures on, and from so large a part of
   * all requests on.
   */
  failuresShownMs: 60_000,
  failingRequestsMin: 5,
  failingShareMin: 0.01,
  /** Changes that are kept, and for how long: 90 days. */
  changesMax: 10_000,
  changesKeptMs: 7_776_000_000,
  /** Reports of one change by several processes come within this time. */
  changesMergedWithinMs: 60_000,
  /** How much is kept of why a reload failed. */
  changeErrorCharsMax: 1_000,
  /** How much is kept of one member that was changed, as JSON; and members of one change that a command reports. */
  changeMemberCharsMax: 200,
  changeMembersMax: 12,
  /** What is said of one reload: texts, the characters of each, and keys that are named. */
  editTextsMax: 20,
  editTextCharsMax: 200,
  editedKeysNamedMax: 5,
  /** Changes in one response. */
  changesPerPageMax: 200,
  /** The newest changes, by which the earlier limits of a key are found. */
  limitChangesReadMax: 2_000,
  /** Processes that are counted as having reported one change or event. */
  listReportsMax: 500,
  /**
   * After so long another process adds an entry in place of the one that was about to: that one is dead, since its
   * calls take `storePatientDeadlineMs` at most.
   */
  listClaimOverdueMs: 5_000,
  /** Entries that are removed by one call because there are too many or they are too old. */
  listRemovedAtOnceMax: 10,
  /** An entry that may have been added already is searched among so many: those since it was about to be added. */
  listSearchedMax: 1_000,
  /** Events that are kept, and for how long: 7 days. */
  eventsMax: 2_000,
  eventsKeptMs: 604_800_000,
  /** Reports by several processes of one event come within this time. */
  eventsMergedWithinMs: 10_000,
  /** Events in one response. */
  eventsPerPageMax: 200,
  /**
   * Events of one kind that a process reports at once, and how often another one after that. Those beyond it are counted
   * in one event, after the first pause; the pause doubles, up to the second figure, as long as there are more.
   */
  eventsAtOnceMax: 20,
  eventsRefillMs: 4_000,
  eventsSummaryPauseMs: 1_000,
  eventsSummaryPauseMaxMs: 60_000,

  /**
   * The pause before a worker that has ended is replaced. It doubles with each that did not live for the third figure, up to
   * the second: one that cannot live must not take a processor from the others.
   */
  workerPauseMs: 100,
  workerPauseMaxMs: 10_000,
  workerSteadyMs: 60_000,
  /** How often a worker tells its figures, and after how long without them it is killed and replaced: its event loop hangs. */
  workerReportIntervalMs: 1_000,
  workerSilenceMaxMs: 30_000,
  /** How long `/metrics` waits for what each worker says of its process; then it has what that worker said before. */
  workerReplyTimeoutMs: 1_000,
  /** How long workers may take to end after the deadline of a drain. */
  workerEndTimeoutMs: 3_000,
  /** What is left of a bound that the workers share, however many they are: connections to a target. */
  workerConnectionsPerTargetMin: 16,

  /** How often the configuration files' content is compared; an edit takes effect once two comparisons have found it. */
  configPollIntervalMs: 250,
  /** A load that takes longer is logged, and is given up when its files change: the newer text may be the repair. */
  configLoadSlowMs: 2_000,
  /**
   * The pause before a load is tried again after its thread has died, of memory for example. It doubles with each failure,
   * up to the second figure, since each try occupies a processor for seconds.
   */
  configRetryPauseMs: 10_000,
  configRetryPauseMaxMs: 600_000,
  /** How long the idle thread that loads the configuration is kept for another edit. */
  configThreadIdleMs: 60_000,
  /** The heap of that thread: a configuration must not fill the memory of the gateway. The largest keys file takes 1,280. */
  configThreadHeapMebibytes: 1_536,
  /** Of it for young objects. V8's own choice takes 45 MiB more with 100,000 keys, and no less time. */
  configThreadYoungMebibytes: 16,
  /** How long the end of that thread waits for what the next thread needs of it. */
  configThreadRetireTimeoutMs: 1_000,
  /**
   * A file that changed this recently is read again, since two edits may have the same time stamp: of Linux within 10 ms, of some
   * file systems within 2 s.
   */
  configSettledAfterMs: 100,
  configSettledCoarseMs: 3_000,
  /**
   * How long the command line waits for one other process that edits the keys (an edit takes a second at most), for all that
   * are before it, and how often it tries.
   */
  editLockWaitMs: 10_000,
  editLockQueueMs: 300_000,
  editLockPollMs: 20,

  /** How long `tollgate check` waits for the lookup of the upstreams' host names, all together. */
  checkLookupTimeoutMs: 2_000,

  /** How long a command waits for a response of the admin API: longer than `adminResponseTimeoutMs`. And the longest it reads. */
  adminCallTimeoutMs: 15_000,
  adminReplyBytesMax: 67_108_864,
  /** The longest secret that `tollgate keys whoami` reads; one in a header field is not longer. */
  secretInputCharsMax: 16_384,
  /** How often `tollgate keys import --directory` sends a part again that could not be done just now, and how long it waits: over a minute, after which changes are counted anew. */
  importRetries: 15,
  importRetryMs: 5_000,
  /** How often `tollgate top` asks for the state and draws it, and after how long without a response it says so. */
  topIntervalMs: 1_000,
  topSilenceShownMs: 3_000,
  /** How often it asks for the keys at most, and for how long it leaves them when that took long: so many times as long. */
  topKeysIntervalMs: 5_000,
  topKeysPauseFactor: 20,
  /** Keys of each of its two lists. */
  topKeysMax: 10,
  /** Of a longer line of a log, `tollgate why` reads the beginning: the gateway's own are shorter. */
  logLineReadBytesMax: 1_048_576,

  /** Log lines are collected up to this many characters: each write is work for another thread. */
  logLinesLengthMax: 65_536,
  /** The same in a gateway of several processes that write into one pipe, in bytes: PIPE_BUF of Linux. */
  logSharedBytesMax: 4_096,
  /** The longest a line waits for others, so that a quiet gateway shows its lines too. */
  logFlushIntervalMs: 1_000,
  /** Log that waits while nobody reads standard output; further lines are dropped. */
  logUnreadBytesMax: 16_777_216,
  /** At a terminal, requests that follow each other this closely and differ only in figures are shown as one line. */
  sameRequestMs: 1_000,
  /** How long the end of the process waits for its last lines. */
  logCloseTimeoutMs: 1_000,

  /** After SIGTERM: how long `/readyz` says 503 before accepting stops, and how long requests in flight may then take. */
  drainGraceMs: 1_000,
  drainDeadlineMs: 25_000,
  /** A Ctrl-C under npm comes twice, from the terminal and from npm: within this time it is the same one. */
  signalEchoMs: 500,
  /** Under `npx`: how often the process looks whether its parent is still there. */
  parentPollMs: 500,

  /** How long each window of a plan is; tests use short ones. */
  windowsMs: calendarWindowsMs,
});

/** The bounds that a part of the gateway is given: those above, or a test's own. */
export type Bounds = { readonly [Name in BoundName]: number } & { readonly windowsMs: WindowsMs };

export type BoundName = Exclude<keyof typeof defaultBounds, 'windowsMs'>;
