/**
 * How much a configuration may hold, and how much of it a report repeats. Nobody tunes these and no test changes them, so
 * the functions that read a configuration take them from here.
 */
export const configSizes = Object.freeze({
  /** One configuration file: 100,000 keys as `tollgate keys create` writes them, with names and limits, take 22 MiB. */
  fileBytesMax: 33_554_432,
  /** A larger content stays in the thread that loads the configuration, or requests would wait for its copy. */
  handedOverBytesMax: 1_048_576,
  /**
   * YAML tokens of a file that is parsed as a whole: words, punctuation, spaces and line breaks. A key takes about 30 of them. A
   * file of nothing but brackets has one a byte, and would fill the memory. A keys file that is read entry by entry does not count
   * its tokens: an entry of more than 4 KiB does.
   */
  tokensMax: 5_500_000,
  /** Values that all aliases of a file stand for: 100,000 keys may share their limits, an alias bomb ends here. */
  aliasedValuesMax: 1_000_000,
  /** Path templates of the API document: each is compared with all before it, and 10,000 take about a second. */
  pathsMax: 10_000,
  /** The API document as JSON, for the API reference. */
  publishedCharsMax: 33_554_432,
  /** Tokens of the admin API, since each is compared with the one that is presented; and names of its listener. */
  adminTokensMax: 100,
  adminHostsMax: 100,
  /** Processes of one gateway: more than there are CPUs in the largest machines help nobody. */
  workersMax: 256,
  /** Upstreams: each target of each is asked for its health five times a second. */
  upstreamsMax: 32,
  /**
   * The shortest timeout of an upstream, and the longest of each kind: a connect takes seconds at most, a report may take
   * an hour to begin, and an event stream may last a day.
   */
  timeoutMinMs: 50,
  connectTimeoutMaxMs: 30_000,
  headersTimeoutMaxMs: 3_600_000,
  totalTimeoutMaxMs: 86_400_000,
  /** Problems in one report: more help nobody, and working out their places costs time. */
  problemsMax: 100,
  /** Reasons why one value cannot be filled in. */
  reasonsMax: 10,
  /** A longer message of a problem is cut: it repeats names of the file, which may be as long as the file. */
  messageCharsMax: 1_000,
  /** Beyond this many in one file, syntax errors follow from the ones before. */
  syntaxErrorsMax: 10,
  /** Longer lines are cut in a report: a file of one line must not fill the log. */
  excerptCharsMax: 200,
  /** How much of a line is masked before that cut: a password in a URL is known by the `@` behind it. */
  maskedCharsMax: 2_000,
  /** For so many days each minute of each key may be kept: a key that is always active takes up to 16 KiB a day. */
  usageKeepDaysMax: 31,
});
