import type { Rejection } from '../errors.ts';

/** What the screen says to a request that it does not let pass. */
export interface ScreenRefusal extends Rejection {
  readonly kind: 'refused';
}

/** For a request that is malformed, or that two readers could read differently. */
export function refuseAsInvalid(message: string): ScreenRefusal {
  return { kind: 'refused', code: 'invalid_request', message };
}
