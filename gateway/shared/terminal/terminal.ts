export interface Terminal {
  /** The user may resize the window at any time. */
  readonly columns: () => number;
  readonly colours: boolean;
  /** Whether a written line can be replaced. */
  readonly rewrites: boolean;
}

/** For a terminal that does not report its width. */
const usualColumns = 100;

/** Undefined when the stream is not a terminal. */
export function terminalOf(
  stream: { readonly isTTY?: boolean; readonly columns?: number },
  env: NodeJS.ProcessEnv,
): Terminal | undefined {
  if (stream.isTTY !== true) return undefined;
  const isDumb = env.TERM === undefined || env.TERM === 'dumb';
  return {
    columns: () => stream.columns || usualColumns,
    // no-color.org: any value but the empty text turns off colours.
    colours: !isDumb && !env.NO_COLOR,
    rewrites: !isDumb,
  };
}
