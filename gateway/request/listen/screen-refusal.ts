import type { Rejection } from '../../shared/errors.ts';

/** Why a request is not accepted: the error that it is answered with. */
export interface ScreenRefusal extends Rejection {
  readonly kind: 'refused';
}

/** For a request that is malformed, or that two readers could read differently. */
export function refuseAsInvalid(message: string): ScreenRefusal {
  return { kind: 'refused', code: 'invalid_request', message };
}
