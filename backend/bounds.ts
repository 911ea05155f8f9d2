/** Every limit of the store: the unit is in the name, the reason in the comment. */
export const bounds = {
  /** The gateway's default, so that both refuse the same bodies. */
  bodyBytesMax: 1_048_576,
  /** How much of a body that is too large is still read and discarded, so that the client can read the 413. */
  lingerBytesMax: 8_388_608,
  /** More than the gateway accepts from a client, because the gateway adds header fields of its own. */
  headersBytesMax: 65_536,
  /** Nesting depth of a body. A NewPet needs one level; the recursion of a JSON reviver is far from a stack overflow. */
  jsonDepthMax: 32,
  /** Unicode code points, as `maxLength` of JSON Schema counts them. */
  nameCharactersMax: 1_000,
  /** Animals in memory: about 30 MB with usual names, 400 MB if each has the longest. One more is refused with 507. */
  petsMax: 100_000,
  /** Page size of GET /pets (specification, Limits). */
  pageLimitMax: 100,
  pageLimitDefault: 20,
  /** From the first byte of a request to its last. */
  requestTimeoutMs: 60_000,
  /** After SIGTERM: how long responses in flight may take before their connections are closed. */
  closeDeadlineMs: 5_000,
} as const;
