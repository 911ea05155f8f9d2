/**
 * The reply, or `late` when it is not there within `deadlineMs`.
 *
 * A stall of this process's own event loop must not pass for a store that is away: when the loop gets on, timers come
 * before sockets. So once the time is up, what has arrived meanwhile is still read (that is what setImmediate waits
 * for). ioredis's commandTimeout knows no such mercy; under load it took replies that were there for missing.
 */
export function withinDeadline<T>(reply: Promise<T>, deadlineMs: number, late: () => T): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => setImmediate(() => resolve(late())), deadlineMs);
    reply.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
