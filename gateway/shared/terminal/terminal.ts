/** The terminal that a person reads at. */
export interface Terminal {
  /** Now: the window may be resized. */
  readonly columns: () => number;
  readonly colours: boolean;
  /** Whether a line that was written can be replaced. */
  readonly rewrites: boolean;
}

/** Where the terminal does not say how wide it is. */
const usualColumns = 100;

/** The terminal that a stream writes to; undefined when it is none. */
export function terminalOf(
  stream: { readonly isTTY?: boolean; readonly columns?: number },
  env: NodeJS.ProcessEnv,
): Terminal | undefined {
  if (stream.isTTY !== true) return undefined;
  const isDumb = env.TERM === undefined || env.TERM === 'dumb';
  return {
    columns: () => stream.columns || usualColumns,
    // By no-color.org any value but the empty one turns them off.
    colours: !isDumb && !env.NO_COLOR,
    rewrites: !isDumb,
  };
}
