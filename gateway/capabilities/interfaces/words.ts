/**
 * A kind of refusals that the usage record counts by name, for each key and operation. The list of an operation's callers shows them as a
 * column and as a member of each caller. A refusal states its name in `countedAs` (`shared/errors.ts`).
 */
export interface CountedRefusal {
  /** The name in the usage record. */
  readonly name: string;
  /** The member of a caller in the API, and the title of its column. */
  readonly member: string;
  readonly title: string;
  /** The descriptions of the member and of its number of requests in the API document. */
  readonly about: string;
  readonly aboutRequests: string;
}

// biome-ignore lint/suspicious/noEmptyInterface: capabilities add their members
export interface DeprecationShownMembers {}

/** What a capability adds to the deprecation of an operation, as short texts: "brownout for 5m every 1h from …". */
export type DeprecationNotes = (deprecation: DeprecationShownMembers) => readonly string[];

/** A permission that a grant can give a key besides limits. */
export interface Exemption {
  /** The name in Redis, and in `exemptions` of a grant and of a decision. */
  readonly name: string;
  /** The member of a grant in the API. Its only value is true. */
  readonly member: string;
  /** A short text for lists and pages: "no brownouts". */
  readonly words: string;
  /** What the key may do, as the end of the sentence "The key may". */
  readonly allows: string;
  /** The option of `keys grant`, and its description. */
  readonly option: string;
  readonly aboutOption: string;
}
