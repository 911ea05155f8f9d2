import type { Rejection } from '../../shared/errors.ts';

/** The error response to a request that fails the checks of its head. */
export interface ScreenRefusal extends Rejection {
  readonly kind: 'refused';
}

/** Makes the refusal of a request that is malformed, or that two parsers could read differently. */
export function refuseAsInvalid(message: string): ScreenRefusal {
  return { kind: 'refused', code: 'invalid_request', message };
}
