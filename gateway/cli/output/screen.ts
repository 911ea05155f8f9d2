import { printableJsonText } from '../../shared/terminal/printable.ts';
import { terminalOf } from '../../shared/terminal/terminal.ts';

/** The meaning of a text, which decides its colour. Colours carry no further information, because every state also has a word. */
export type Tone = 'title' | 'good' | 'warning' | 'bad' | 'faint';

/** Colours a text by its tone. Returns the text unchanged if the output has no colours. */
type Paint = (tone: Tone, text: string) => string;

/** The terminal, pipe or file that a command writes to. */
export interface Screen {
  /** The maximum width of tables and other output. The width is infinite in a pipe or file. */
  readonly columns: number;
  readonly paint: Paint;
}

const columnsMin = 40;

/** The width is COLUMNS or the width of the terminal. The program `watch` sets COLUMNS, but shells do not export this variable. */
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

/** Whether the output can overwrite its previous lines. */
export function isLive(
  stream: { readonly isTTY?: boolean; readonly columns?: number },
  env: NodeJS.ProcessEnv,
): boolean {
  return terminalOf(stream, env)?.rewrites === true;
}

/** The SGR parameters (ECMA-48 8.3.117) for bold, green, yellow, red and faint text. */
const codes: Readonly<Record<Tone, number>> = { title: 1, good: 32, warning: 33, bad: 31, faint: 2 };

function coloured(tone: Tone, text: string): string {
  return `\u001b[${codes[tone]}m${text}\u001b[0m`;
}

function plain(_: Tone, text: string): string {
  return text;
}

/** Writes lines to standard output. */
export function print(lines: readonly string[]): void {
  console.log(lines.join('\n'));
}

/** Writes one JSON document to standard output. */
export function printJson(value: unknown): void {
  console.log(printableJsonText(value));
}
