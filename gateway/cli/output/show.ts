/** Prints a response on standard output, in the form that the options of the command choose. */
import { missingText } from '../../admin/words/list.js';
import type { Reply } from '../admin/admin-client.ts';
import type { Asking } from '../command.ts';
import { print, printJson, type Screen, screenOf } from './screen.ts';

/**
 * Prints a response: its JSON with `--json`, and otherwise the lines that `view` makes of its body. If figures are missing, a line on standard
 * error says so.
 */
export function show<Body>(
  { json: asJson }: Pick<Asking, 'json'>,
  { json, body }: Reply<Body>,
  view: (body: Body, screen: Screen, nowMs: number) => readonly string[],
): void {
  tellMissing(json);
  if (asJson) printJson(json);
  else print(view(body, screenNow(), Date.now()));
}

/** Prints on standard error that a response lacks figures, if it does. */
export function tellMissing(json: unknown): void {
  const { missing } = Object(json);
  if (missing !== undefined) process.stderr.write(`${missingText(missing)}\n`);
}

/** Standard output, with the terminal's current width. */
export function screenNow(): Screen {
  return screenOf(process.stdout, process.env);
}
