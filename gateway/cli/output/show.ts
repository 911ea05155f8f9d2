/** Prints a response on standard output, in the form that the options of the command choose. */
import type { Reply } from '../admin/admin-client.ts';
import type { Asking } from '../command.ts';
import { print, printJson, type Screen, screenOf } from './screen.ts';

/** Prints a response: its JSON with `--json`, and otherwise the lines that `view` makes of its body. */
export function show<Body>(
  { json: asJson }: Pick<Asking, 'json'>,
  { json, body }: Reply<Body>,
  view: (body: Body, screen: Screen, nowMs: number) => readonly string[],
): void {
  if (asJson) printJson(json);
  else print(view(body, screenNow(), Date.now()));
}

/** Standard output, with the terminal's current width. */
export function screenNow(): Screen {
  return screenOf(process.stdout, process.env);
}
