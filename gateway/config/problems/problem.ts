/** A position in a configuration file. */
export interface Place {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** From 1 in UTF-16 units, as editors count. */
  readonly column: number;
  /** The line without filled-in variables and with possible secrets masked; empty if the file does not exist. */
  readonly excerpt: string;
}

/** Plain data for the JSON log. */
export interface Problem extends Place {
  /** Names the fault and its remedy, but never values of variables or keys, because they may be secrets. */
  readonly message: string;
  /** The other part of a conflict, such as the first of two equal ids. */
  readonly related?: Place & { readonly message: string };
  /**
   * The files that may be at fault, the most likely first; by default `file` and the file of `related`. Removed before the problem is
   * returned, because an operator may have written a secret in place of a path.
   */
  readonly files?: readonly string[];
}

/** For a problem that concerns a whole file. */
export function wholeFile(file: string): Place {
  return { file, line: 1, column: 1, excerpt: '' };
}
