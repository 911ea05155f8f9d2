/**
 * The reply, or the result of `late` when there is none within `deadlineMs`.
 *
 * When this process's own event loop was blocked, its timers run before its sockets are read. A reply that is already in
 * the socket must not count as missing, so after the timer the sockets are read once more (setImmediate runs after
 * that). ioredis's `commandTimeout` does not wait for that: under load it failed calls whose replies had arrived.
 */
export function withinDeadline<T>(reply: Promise<T>, deadlineMs: number, late: () => T): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => setImmediate(() => resolve(late())), deadlineMs);
    reply.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
