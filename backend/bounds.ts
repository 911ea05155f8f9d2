/** Every limit of the store, with its unit in the name and its reason in the comment. */
export const bounds = {
  /** Equals the gateway's default, so that gateway and store reject the same bodies. */
  bodyBytesMax: 1_048_576,
  /** How many bytes of an oversized body are read and discarded, so that the client can read the 413. */
  lingerBytesMax: 8_388_608,
  /** Exceeds the gateway's limit for clients, because the gateway adds header fields. */
  headersBytesMax: 65_536,
  /** A NewPet needs one level. At this depth the recursion of a JSON reviver cannot overflow the stack. */
  jsonDepthMax: 32,
  /** Unicode code points, which `maxLength` of JSON Schema counts. */
  nameCharactersMax: 1_000,
  /** About 30 MB with typical names, 400 MB with the longest names. A further animal is refused with 507. */
  petsMax: 100_000,
  /** Specification, Limits. */
  pageLimitMax: 100,
  pageLimitDefault: 20,
  /** From the first byte of a request to its last byte. */
  requestTimeoutMs: 60_000,
  /** How long responses in flight may take after SIGTERM before their connections are closed. */
  closeDeadlineMs: 5_000,
} as const;
