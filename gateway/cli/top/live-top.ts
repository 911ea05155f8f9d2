import { setTimeout as sleep } from 'node:timers/promises';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { CommandError } from '../output/command-error.ts';
import { clock } from '../output/figures.ts';
import type { Screen } from '../output/screen.ts';
import { type TopData, topPicture } from './top-picture.ts';

/** The terminal with its output and its keyboard. */
interface LiveTerminal {
  readonly output: NodeJS.WriteStream;
  readonly input: NodeJS.ReadStream;
  /** The current width and colours of the terminal. */
  readonly screen: () => Screen;
}

export interface LiveTop {
  readonly read: () => Promise<TopData>;
  readonly terminal: LiveTerminal;
  /** The process whose signals and events stop `top`. */
  readonly ending: Pick<NodeJS.Process, 'on' | 'off' | 'exit'>;
  readonly bounds: Bounds;
}

const enter = '\u001b[?1049h\u001b[?25l';
const leave = '\u001b[?25h\u001b[?1049l';
const home = '\u001b[H';
const clearLine = '\u001b[K';
const clearBelow = '\u001b[J';

/**
 * The user quits `top` by pressing q, Q, Escape, Ctrl-C or Ctrl-D. In raw mode, the terminal sends Ctrl-C as a character and not as a
 * signal.
 */
const endsBy: ReadonlySet<string> = new Set(['q', 'Q', '\u001b', '\u0003', '\u0004']);

/**
 * Updates the screen repeatedly until the user quits or a signal stops `top`. `top` uses the terminal's alternate screen, and always
 * restores the former content. While the gateway does not answer, the last content stays with a warning, and `top` tries again.
 *
 * @param first the first picture: the caller has already reported a gateway that never answers
 * @throws a CommandError that will not pass, such as a revoked token
 */
export async function runLiveTop(first: TopData, { read, terminal, ending, bounds }: LiveTop): Promise<void> {
  const { output, input, screen } = terminal;
  const ended = new AbortController();
  let data = first;
  let readMs = Date.now();
  let failure: string | undefined;

  const end = () => ended.abort();
  const onKey = (key: Buffer) => {
    if (endsBy.has(key.toString('latin1'))) end();
  };
  const restore = () => {
    if (input.isTTY) input.setRawMode(false);
    output.write(leave);
  };
  const onBug = (bug: unknown) => {
    restore();
    console.error(bug);
    ending.exit(1);
  };

  function draw(): void {
    const nowMs = Date.now();
    const isSilent = nowMs - readMs > bounds.topSilenceShownMs;
    const age = `The figures are those of ${clock(readMs, nowMs)} UTC. This command sends a request to the gateway every second.`;
    const notice =
      failure !== undefined
        ? `${failure} ${age}`
        : isSilent
          ? `The gateway has not answered for ${Math.round((nowMs - readMs) / 1_000)} s. ${age}`
          : undefined;
    const rows = Math.max(1, output.rows || 24);
    const lines = topPicture(data, { nowMs, notice }, { ...screen(), rows });
    // Each line is cleared before it is written. After a line of the full width, the cursor may still be on the last character,
    // which a later clear would erase.
    const text = lines.map((line) => clearLine + line).join('\r\n');
    output.write(home + text + (lines.length < rows ? `\r\n${clearBelow}` : ''));
  }

  async function readOn(): Promise<void> {
    while (!ended.signal.aborted) {
      await sleep(bounds.topIntervalMs, undefined, { signal: ended.signal });
      try {
        data = await read();
        readMs = Date.now();
        failure = undefined;
      } catch (error) {
        if (!(error instanceof CommandError) || error.kind !== 'passing') throw error;
        failure = error.message;
      }
    }
  }

  ending.on('uncaughtException', onBug).on('exit', restore);
  for (const signal of signals) ending.on(signal, end);
  // A write error means that the terminal was closed, so `top` exits.
  output.on('error', end).on('resize', draw);
  if (input.isTTY) input.setRawMode(true).on('data', onKey).on('end', end).on('error', end);
  output.write(enter);
  draw();
  const timer = setInterval(draw, bounds.topIntervalMs);
  try {
    await Promise.race([readOn(), untilAborted(ended.signal)]);
  } catch (error) {
    if (!ended.signal.aborted) throw error;
  } finally {
    end();
    clearInterval(timer);
    output.off('resize', draw);
    restore();
    for (const signal of signals) ending.off(signal, end);
    ending.off('uncaughtException', onBug).off('exit', restore);
    if (input.isTTY) input.off('data', onKey).destroy();
  }
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
