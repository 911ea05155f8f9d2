/** Every size, wait and number of the store that has a limit: the unit stands in the name, the reason beside it. */
export const bounds = {
  /** The same as the gateway's default, so that neither lets pass what the other refuses. */
  bodyBytesMax: 1_048_576,
  /** What is still read of a body that is too large, so that the client can read the 413. */
  lingerBytesMax: 8_388_608,
  /** Above what the gateway accepts from a client, since it adds fields of its own. */
  headersBytesMax: 65_536,
  /** Brackets open at once in a body. An animal needs one; the recursion of a JSON reviver stays far from its end. */
  jsonDepthMax: 32,
  /** Unicode code points, as `maxLength` of JSON Schema counts them. */
  nameCharactersMax: 1_000,
  /** Animals in memory: some 30 MB of usual ones, 400 MB if each has the longest name. Beyond it 507. */
  petsMax: 100_000,
  /** Page size of GET /pets (specification, Limits). */
  pageLimitMax: 100,
  pageLimitDefault: 20,
  /** From the first byte of a request to its last. */
  requestTimeoutMs: 60_000,
  /** After SIGTERM: how long answers in flight may take before their connections are cut. */
  closeDeadlineMs: 5_000,
} as const;
