import { withinDeadline } from '../shared/structures/within-deadline.ts';
import { plainReason } from './fault-place.ts';
import type { RedisConnection } from './redis-connection.ts';

/** Redis did not reply, or refused the call. `mayHaveRun`: a write may have taken effect fully or partly. */
export interface Away {
  readonly kind: 'away';
  readonly mayHaveRun: boolean;
  readonly reason: string;
}

export const notConnected: Away = { kind: 'away', mayHaveRun: false, reason: 'not connected' };
export const late: Away = { kind: 'away', mayHaveRun: true, reason: 'no reply within the deadline' };

/** An error reply from Redis means that the call has written nothing. */
export function toAway(error: Error): Away {
  return { kind: 'away', mayHaveRun: !isErrorReply(error), reason: plainReason(error.message) };
}

/** `ReplyError` of ioredis is not imported, because a gateway without Redis does not load ioredis. */
export function isErrorReply(error: Error): boolean {
  return error.name === 'ReplyError';
}

type Ready = Pick<RedisConnection, 'isReady'>;

/** Never rejects: returns the reply, or why there is none. */
export async function replyOrAway<T extends { readonly kind: string }>(
  { isReady }: Ready,
  names: readonly string[],
  call: () => Promise<T>,
  deadlineMs: number,
): Promise<T | Away> {
  if (!names.every(isReady)) return notConnected;
  const reply: Promise<T | Away> = call().catch(toAway);
  return withinDeadline<T | Away>(reply, deadlineMs, () => late);
}

/** Never rejects: returns undefined without a reply. */
export async function replyOrUndefined<T>(
  { isReady }: Ready,
  names: readonly string[],
  call: () => Promise<T>,
  deadlineMs: number,
): Promise<T | undefined> {
  if (!names.every(isReady)) return undefined;
  const reply: Promise<T | undefined> = call().catch(() => undefined);
  return withinDeadline<T | undefined>(reply, deadlineMs, () => undefined);
}
