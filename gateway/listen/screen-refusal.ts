import type { ErrorCode } from '../errors.ts';

/** What the screen says to a request that it does not let pass. */
export interface ScreenRefusal {
  readonly kind: 'refused';
  readonly code: ErrorCode;
  /** Public; repeats nothing that the client sent. */
  readonly message: string;
}
