import type { IncomingMessage } from 'node:http';

/**
 * Whether nothing more of a request is to come. Node calls one without a body ended from the beginning and never
 * complete (`optimizeEmptyRequests`).
 */
export function hasArrived({ complete, readableEnded }: IncomingMessage): boolean {
  return complete || readableEnded;
}
