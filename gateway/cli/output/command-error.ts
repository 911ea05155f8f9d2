/** The reason why a command failed, with advice, as a sentence for the operator. An error of any other class is a bug. */
export class CommandError extends Error {
  readonly kind: CommandErrorKind;
  /** Whether the gateway may have made the change, although the command failed. For example, the response of the gateway was lost. */
  readonly mayBeDone: boolean;

  constructor(message: string, kind: CommandErrorKind = 'final', { mayBeDone = false } = {}) {
    super(message);
    this.kind = kind;
    this.mayBeDone = mayBeDone;
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
