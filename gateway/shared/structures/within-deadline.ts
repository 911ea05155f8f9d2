/**
 * Calls `expire` when `ms` are over. @returns stops that
 *
 * When this process's own event loop was blocked, or the process was stopped, its timers run before its sockets are read.
 * What is already in a socket must not count as missing, so after the timer the sockets are read once more (setImmediate runs
 * after that). ioredis's `commandTimeout` does not wait for that: under load it failed calls whose replies had arrived.
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

/** The reply, or the result of `late` when there is none within `deadlineMs`. */
export function withinDeadline<T>(reply: Promise<T>, deadlineMs: number, late: () => T): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = startDeadline(deadlineMs, () => resolve(late()));
    reply.then(resolve, reject).finally(stop);
  });
}

/**
 * Those of several replies that arrive in time, in their order; undefined in place of the others, and the error of one of
 * them that failed. For what is read from several servers, of which some may be away.
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
  // A reply that is late must not change it.
  return { values: [...values], error };
}
