import { printableJsonText } from '../../shared/terminal/printable.ts';
import { terminalOf } from '../../shared/terminal/terminal.ts';

/** What a text means. Colours only repeat it: every state has a word. */
export type Tone = 'title' | 'good' | 'warning' | 'bad' | 'faint';

/** A text in the colour of its tone; the text as it is where there are no colours. */
export type Paint = (tone: Tone, text: string) => string;

/** Where a command writes what people read. */
export interface Screen {
  /** No line of a table or picture is longer. Infinity in a pipe or file, where nothing is cut. */
  readonly columns: number;
  readonly paint: Paint;
}

const columnsMin = 40;

/** As wide as COLUMNS says, which shells do not export by themselves and `watch` sets; else as wide as the terminal. */
export function screenOf(
  stream: { readonly isTTY?: boolean; readonly columns?: number },
  env: NodeJS.ProcessEnv,
): Screen {
  const terminal = terminalOf(stream, env);
  const stated = /^[1-9]\d{0,4}$/.test(env.COLUMNS ?? '') ? Number(env.COLUMNS) : undefined;
  return {
    columns: Math.max(columnsMin, stated ?? terminal?.columns() ?? Number.POSITIVE_INFINITY),
    paint: terminal?.colours ? coloured : plain,
  };
}

/** Whether a picture can be drawn over the one before it. */
export function isLive(
  stream: { readonly isTTY?: boolean; readonly columns?: number },
  env: NodeJS.ProcessEnv,
): boolean {
  return terminalOf(stream, env)?.rewrites === true;
}

/** The numbers of SGR (ECMA-48 8.3.117): bold, green, yellow, red, faint. */
const codes: Readonly<Record<Tone, number>> = { title: 1, good: 32, warning: 33, bad: 31, faint: 2 };

function coloured(tone: Tone, text: string): string {
  return `\u001b[${codes[tone]}m${text}\u001b[0m`;
}

function plain(_: Tone, text: string): string {
  return text;
}

/** What a state of a key means. */
export function toneOf(state: string): Tone {
  switch (state) {
    case 'ok':
      return 'good';
    case 'near':
    case 'limited':
      return 'warning';
    case 'banned':
      return 'bad';
    default:
      return 'faint';
  }
}

/** Writes lines to standard output. */
export function print(lines: readonly string[]): void {
  console.log(lines.join('\n'));
}

/** Writes one JSON document to standard output. */
export function printJson(value: unknown): void {
  console.log(printableJsonText(value));
}
