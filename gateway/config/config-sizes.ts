/**
 * Maximum sizes of a configuration and of its reports. These sizes are constants and not settings, so the functions that read a
 * configuration import them.
 */
export const configSizes = Object.freeze({
  /** The maximum size of a configuration file. 100,000 keys with names and limits from `tollgate keys create` take 22 MiB. */
  fileBytesMax: 33_554_432,
  /**
   * The maximum number of punctuation marks (`, : - ? [ ] { }`) and line breaks in a file that is parsed as a whole. A key has about 15.
   * A file that consists only of brackets would exhaust the memory. If a keys file is read entry by entry, this maximum applies to each
   * entry of more than 4 KiB.
   */
  marksMax: 5_500_000,
  /**
   * The maximum length of a text that is parsed immediately. Parsing a text of this length takes 0.1 s. A longer file may be half written,
   * so it is not parsed until two successive checks of the file have found the same content. Parsing a half-written file would delay the
   * reading of the complete file by seconds.
   */
  parsedAtOnceCharsMax: 262_144,
  /**
   * The maximum number of values that a file's aliases may expand to. This maximum permits 100,000 keys with shared limits, and
   * stops an alias bomb.
   */
  aliasedValuesMax: 1_000_000,
  /** The maximum number of times that a document with closing brackets at the start of lines is parsed. Two are enough for most. */
  bracketRoundsMax: 4,
  /** The maximum number of path templates in an API document. */
  pathsMax: 10_000,
  /** The maximum number of files of an API document, including the first file. Each file is watched for changes. */
  apiFilesMax: 2_000,
  /** The maximum length of a chain of references to an operation. */
  referencesMax: 100,
  /** The maximum length of the API document's JSON in the API reference. */
  publishedCharsMax: 33_554_432,
  /**
   * The maximum numbers of admin tokens and of host names of the admin listener. A presented token is compared with every
   * configured token.
   */
  adminTokensMax: 100,
  adminHostsMax: 100,
  /** The maximum number of worker processes. The largest machines have fewer CPUs than this maximum. */
  workersMax: 256,
  /** The maximum number of upstreams. The health of each target is checked five times a second. */
  upstreamsMax: 32,
  /** The largest `failing.failures` of an upstream. */
  failuresMax: 1_000_000,
  /**
   * The minimum of an upstream's timeouts, and the maximum of each kind of timeout. A connection attempt takes seconds at most. A slow
   * response may take an hour to begin. An event stream may last a day.
   */
  timeoutMinMs: 50,
  connectTimeoutMaxMs: 30_000,
  headersTimeoutMaxMs: 3_600_000,
  totalTimeoutMaxMs: 86_400_000,
  /**
   * The maximum number of problems in a report. A longer report is not useful, and finding the line and column of each problem costs time.
   */
  problemsMax: 100,
  /** The maximum number of reasons in one message about variables that have no value. */
  reasonsMax: 10,
  /** The maximum length of a message. Messages repeat names from the file, and a name may be as long as the file. */
  messageCharsMax: 1_000,
  /** The maximum number of reported syntax errors in a file. Further errors are usually consequences of the first errors. */
  syntaxErrorsMax: 10,
  /** The maximum length of a line in a report. A file may consist of a single long line. */
  excerptCharsMax: 200,
  /**
   * A longer line is cut to this length before its secrets are masked, and to `excerptCharsMax` afterwards. The masking needs
   * more characters than the report shows, because a password in a URL is recognised by the `@` after it.
   */
  maskedCharsMax: 2_000,
  /** The longest retention of per-minute usage, in days. The usage record of a key that is always active grows by up to 16 KiB a day. */
  usageKeepDaysMax: 31,
});
