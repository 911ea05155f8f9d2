/**
 * Calls of `run` do not overlap. A call during a run waits for its end, and begins another run, which further calls share until it begins.
 * The result of a call therefore always comes from a run that began after the call.
 */
export function joinNextRun<Result>(run: () => Promise<Result>): () => Promise<Result> {
  let last: Promise<unknown> = Promise.resolve();
  let next: Promise<Result> | undefined;
  const begin = () => {
    next = undefined;
    const running = run();
    last = running;
    return running;
  };
  return () => {
    next ??= last.then(begin, begin);
    return next;
  };
}
