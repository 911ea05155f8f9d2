/** The terminal that a person reads at. */
export interface Terminal {
  /** The current width, because the window may be resized. */
  readonly columns: () => number;
  readonly colours: boolean;
  /** Whether a written line can be replaced. */
  readonly rewrites: boolean;
}

/** For a terminal without a known width. */
const usualColumns = 100;

/** The terminal behind a stream; undefined without a terminal. */
export function terminalOf(
  stream: { readonly isTTY?: boolean; readonly columns?: number },
  env: NodeJS.ProcessEnv,
): Terminal | undefined {
  if (stream.isTTY !== true) return undefined;
  const isDumb = env.TERM === undefined || env.TERM === 'dumb';
  return {
    columns: () => stream.columns || usualColumns,
    // By no-color.org any value except the empty one turns off colours.
    colours: !isDumb && !env.NO_COLOR,
    rewrites: !isDumb,
  };
}
