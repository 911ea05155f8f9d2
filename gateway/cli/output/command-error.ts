/** The reason why a command failed, with advice, as a sentence for the operator. An error of any other class is a bug. */
export class CommandError extends Error {
  readonly kind: CommandErrorKind;
  /** Whether the gateway may have made the change, although the command failed. For example, the response of the gateway was lost. */
  readonly mayBeDone: boolean;
  /** The wait that the gateway asked for, ms; 0 if it asked for none. */
  readonly retryAfterMs: number;

  constructor(
    message: string,
    kind: CommandErrorKind = 'final',
    { mayBeDone = false, retryAfterMs = 0 }: { mayBeDone?: boolean; retryAfterMs?: number } = {},
  ) {
    super(message);
    this.kind = kind;
    this.mayBeDone = mayBeDone;
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * `passing` means that the same command may succeed a moment later. `not_found` means that the gateway has no such key or
 * operation.
 */
export type CommandErrorKind = 'final' | 'passing' | 'not_found';

/** Makes a sentence such as "The file x cannot be read (no such file or directory)." */
export function unreadable(file: string, error: unknown): CommandError {
  const reason =
    error instanceof Error ? error.message.replace(/^[A-Z]+: |, \w+( '.*')?$/g, '') : String(error);
  return new CommandError(`The file ${file} cannot be read (${reason}).`);
}
