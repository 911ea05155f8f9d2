/**
 * Calls `expire` after `ms`. @returns a function that stops this
 *
 * After a blocked event loop, or a stopped process, timers run before sockets are read. Data that is already in a socket must not
 * count as missing, so `expire` waits until the sockets are read (setImmediate). ioredis's `commandTimeout` does not, and under load
 * failed calls whose replies had arrived.
 */
export function startDeadline(ms: number, expire: () => void): () => void {
  let turn: NodeJS.Immediate | undefined;
  const timer = setTimeout(() => {
    turn = setImmediate(expire);
  }, ms);
  return () => {
    clearTimeout(timer);
    clearImmediate(turn);
  };
}

/** The reply, or the result of `late` after `deadlineMs`. */
export function withinDeadline<T>(reply: Promise<T>, deadlineMs: number, late: () => T): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = startDeadline(deadlineMs, () => resolve(late()));
    reply.then(resolve, reject).finally(stop);
  });
}

/**
 * The replies that arrive in time, in order, with undefined for missing replies, and the last error. For reads from several servers, of
 * which some may be away.
 */
export async function whateverArrives<T>(
  replies: readonly Promise<T>[],
  deadlineMs: number,
): Promise<{ readonly values: readonly (T | undefined)[]; readonly error: Error | undefined }> {
  const values: (T | undefined)[] = replies.map(() => undefined);
  let error: Error | undefined;
  const noted = replies.map((reply, index) =>
    reply.then(
      (value) => {
        values[index] = value;
      },
      (failure: Error) => {
        error = failure;
      },
    ),
  );
  await withinDeadline<unknown>(Promise.all(noted), deadlineMs, () => undefined);
  // A copy, which late replies do not change.
  return { values: [...values], error };
}
