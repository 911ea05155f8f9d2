/**
 * @returns a function that cancels the call
 *
 * After the event loop was blocked or the process was suspended, timers run before sockets are read. Data that is already in a socket must
 * not count as missing, so the call waits until the sockets are read (setImmediate). The `commandTimeout` of ioredis does not, and failed
 * calls under load whose replies had already arrived.
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

/** After `deadlineMs` without a reply, resolves to the result of `late`. */
export function withinDeadline<T>(reply: Promise<T>, deadlineMs: number, late: () => T): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = startDeadline(deadlineMs, () => resolve(late()));
    reply.then(resolve, reject).finally(stop);
  });
}

/**
 * The replies in order, with undefined for those that are missing at the deadline, and the last error. Some of several servers may be
 * unavailable.
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
  // A late reply changes `values`, so callers get a copy.
  return { values: [...values], error };
}
