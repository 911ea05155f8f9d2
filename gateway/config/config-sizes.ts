/**
 * Limits on the size of a configuration, and on how much of it a report repeats. They are constants, not settings, so the
 * functions that read a configuration import them.
 */
export const configSizes = Object.freeze({
  /** The size of one configuration file. 100,000 keys with names and limits from `tollgate keys create` take 22 MiB. */
  fileBytesMax: 33_554_432,
  /**
   * The number of YAML tokens (words, punctuation, spaces, line breaks) of a file that is parsed as a whole. A key has about 30
   * tokens. A file of only brackets has one token per byte, and would exhaust the memory. In a keys file that is read entry by
   * entry, only entries of more than 4 KiB count their tokens.
   */
  tokensMax: 5_500_000,
  /**
   * A longer text is parsed only after two comparisons have found it, because it may be half written, and its parse would delay the
   * load of the whole text for seconds. A text of this length takes 0.1 s.
   */
  parsedAtOnceCharsMax: 262_144,
  /** The number of values that a file's aliases expand to. It permits 100,000 keys with shared limits and stops an alias bomb. */
  aliasedValuesMax: 1_000_000,
  /** Path templates of the API document. */
  pathsMax: 10_000,
  /** Files of the API document that `$ref` leads to, the first file included. Each is looked at for changes. */
  apiFilesMax: 2_000,
  /** References that lead from one to the next before an operation. */
  referencesMax: 100,
  /** The API document as JSON, for the API reference. */
  publishedCharsMax: 33_554_432,
  /** Admin tokens, each of which is compared with a presented token, and host names of the admin listener. */
  adminTokensMax: 100,
  adminHostsMax: 100,
  /** Processes of one gateway. More processes than the CPUs of the largest machines are useless. */
  workersMax: 256,
  /** Upstreams. The health of each target is checked five times a second. */
  upstreamsMax: 32,
  /**
   * The shortest timeout of an upstream, and the longest of each kind. A connect takes seconds at most. A slow response may take
   * an hour to begin. An event stream may last a day.
   */
  timeoutMinMs: 50,
  connectTimeoutMaxMs: 30_000,
  headersTimeoutMaxMs: 3_600_000,
  totalTimeoutMaxMs: 86_400_000,
  /** Problems in one report. A longer report is not useful, and finding the place of each problem costs time. */
  problemsMax: 100,
  /** How many reasons one message lists for variables that cannot be filled in. */
  reasonsMax: 10,
  /** Longer messages are cut, because a message repeats names from the file, and a name may be as long as the file. */
  messageCharsMax: 1_000,
  /** Syntax errors in one file. Further errors are usually consequences of the first ones. */
  syntaxErrorsMax: 10,
  /** Longer lines are cut in a report, so that a file of a single line does not fill the log. */
  excerptCharsMax: 200,
  /** Length of a line that is masked before the cut. A password in a URL can only be recognised by the `@` that follows it. */
  maskedCharsMax: 2_000,
  /** The longest retention of per-minute usage, in days. A key that is always active takes up to 16 KiB a day. */
  usageKeepDaysMax: 31,
});
