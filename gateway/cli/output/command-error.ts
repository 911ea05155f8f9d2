/**
 * Why a command failed, as a sentence for the person at the terminal that says what to do. Anything else that is thrown is
 * a bug.
 */
export class CommandError extends Error {
  readonly kind: CommandErrorKind;
  /** Whether a gateway may have done what it was asked to: the request reached it, and no response came. */
  readonly mayBeDone: boolean;

  constructor(message: string, kind: CommandErrorKind = 'final', { mayBeDone = false } = {}) {
    super(message);
    this.kind = kind;
    this.mayBeDone = mayBeDone;
  }
}

/** `passing`: the same may succeed a moment later. `not_found`: the gateway knows no such key or operation. */
export type CommandErrorKind = 'final' | 'passing' | 'not_found';

/** "The file x cannot be read (no such file or directory)." */
export function unreadable(file: string, error: unknown): CommandError {
  const reason =
    error instanceof Error ? error.message.replace(/^[A-Z]+: |, \w+( '.*')?$/g, '') : String(error);
  return new CommandError(`The file ${file} cannot be read (${reason}).`);
}
