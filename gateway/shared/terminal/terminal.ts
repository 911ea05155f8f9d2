/** The properties of a terminal that output must respect. */
export interface Terminal {
  /** Returns the current width in columns. The user may resize the window at any time. */
  readonly columns: () => number;
  readonly colours: boolean;
  /** Whether the terminal can move the cursor back, so that a written line can be replaced. */
  readonly rewrites: boolean;
}

/** The assumed width of a terminal that does not report its width. */
const usualColumns = 100;

/** The terminal to which a stream writes; undefined when the stream is not a terminal. */
export function terminalOf(
  stream: { readonly isTTY?: boolean; readonly columns?: number },
  env: NodeJS.ProcessEnv,
): Terminal | undefined {
  if (stream.isTTY !== true) return undefined;
  const isDumb = env.TERM === undefined || env.TERM === 'dumb';
  return {
    columns: () => stream.columns || usualColumns,
    // Any value of NO_COLOR except the empty text turns off colours (no-color.org).
    colours: !isDumb && !env.NO_COLOR,
    rewrites: !isDumb,
  };
}
