/**
 * Calls `expire` after `ms`. @returns a function that cancels the call
 *
 * After the event loop was blocked or the process was suspended, timers run before sockets are read. Data that is already in a socket must
 * not count as missing, so the call waits until the sockets are read (setImmediate). The `commandTimeout` of ioredis does not wait until
 * the sockets are read. Under load, calls failed because of `commandTimeout`, although their replies had already arrived.
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

/** Resolves to the reply. If there is no reply after `deadlineMs`, resolves to the result of `late`. */
export function withinDeadline<T>(reply: Promise<T>, deadlineMs: number, late: () => T): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = startDeadline(deadlineMs, () => resolve(late()));
    reply.then(resolve, reject).finally(stop);
  });
}

/**
 * Waits for the replies until the deadline. Returns the replies in order, with undefined for missing replies, and the last error. Reads
 * from several servers use this function, because some servers may be unavailable.
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
