/**
 * Why a command failed, as a sentence for the person at the terminal that says what to do. Anything else that is thrown is
 * a bug.
 */
export class CommandError extends Error {
  readonly kind: CommandErrorKind;

  constructor(message: string, kind: CommandErrorKind = 'final') {
    super(message);
    this.kind = kind;
  }
}

/** `passing`: the same may succeed a moment later. `not_found`: the gateway knows no such key or operation. */
export type CommandErrorKind = 'final' | 'passing' | 'not_found';
