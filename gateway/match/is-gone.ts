import type { Operation } from '../model.ts';

/** Whether an operation's sunset has come (RFC 8594) and the document does not say to keep serving it. */
export function isGone(operation: Operation, nowMs: number): boolean {
  const sunsetMs = operation.deprecation?.sunsetMs;
  return sunsetMs !== undefined && nowMs >= sunsetMs && operation.deprecation?.afterSunset === 'gone';
}
