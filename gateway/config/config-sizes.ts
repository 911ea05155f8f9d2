/**
 * Maximum sizes of a configuration and of its reports. They are constants and not settings, so the functions that read a configuration
 * import them.
 */
export const configSizes = Object.freeze({
  /** 100,000 keys with names and limits from `tollgate keys create` take 22 MiB. */
  fileBytesMax: 33_554_432,
  /**
   * Punctuation marks (`, : - ? [ ] { }`) and line breaks in a file that is parsed as a whole. A key has about 15. A file of brackets only
   * would exhaust the memory. In a keys file that is read entry by entry, the maximum applies to each entry of more than 4 KiB.
   */
  marksMax: 5_500_000,
  /**
   * The length of a text that is parsed immediately, in 0.1 s. A longer file may be half written, and parsing it would delay the complete
   * file by seconds. It is parsed after two successive checks have found the same content.
   */
  parsedAtOnceCharsMax: 262_144,
  /** Values that a file's aliases may expand to: enough for 100,000 keys with shared limits, and too few for an alias bomb. */
  aliasedValuesMax: 1_000_000,
  /** Parses of a document with closing brackets at the start of lines. Two are enough for most. */
  bracketRoundsMax: 4,
  /** In an API document. */
  pathsMax: 10_000,
  /** Files of an API document, including the first. Each file is watched for changes. */
  apiFilesMax: 2_000,
  /** The length of a chain of references to an operation. */
  referencesMax: 100,
  /** The API document's JSON in the API reference. */
  publishedCharsMax: 33_554_432,
  /** A presented token is compared with every configured token. */
  adminTokensMax: 100,
  adminHostsMax: 100,
  /** The largest machines have fewer CPUs. */
  workersMax: 256,
  /** The health of each target is checked five times a second. */
  upstreamsMax: 32,
  /** `failing.failures` of an upstream. */
  failuresMax: 1_000_000,
  /** A connection attempt takes seconds at most. A slow response may take an hour to begin. An event stream may last a day. */
  timeoutMinMs: 50,
  connectTimeoutMaxMs: 30_000,
  headersTimeoutMaxMs: 3_600_000,
  totalTimeoutMaxMs: 86_400_000,
  /** In a report. Finding the line and column of each problem costs time. */
  problemsMax: 100,
  /** In one message about variables without a value. */
  reasonsMax: 10,
  /** Messages repeat names from the file, and a name may be as long as the file. */
  messageCharsMax: 1_000,
  /** Reported syntax errors of a file. Further errors are usually consequences. */
  syntaxErrorsMax: 10,
  /** A line in a report. A file may consist of a single long line. */
  excerptCharsMax: 200,
  /**
   * A longer line is cut before its secrets are masked, and to `excerptCharsMax` afterwards. Masking needs more characters than the report
   * shows, because a password in a URL is recognised by the `@` after it.
   */
  maskedCharsMax: 2_000,
  /** Days of per-minute usage. The record of a key that is always active grows by up to 16 KiB a day. */
  usageKeepDaysMax: 31,
});
