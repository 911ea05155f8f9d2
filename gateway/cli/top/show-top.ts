import { defaultBounds } from '../../shared/timeouts-and-sizes.ts';
import { clientOf } from '../admin/find-gateway.ts';
import type { Asking } from '../command.ts';
import { isLive, print, printJson, screenOf } from '../output/screen.ts';
import { screenNow } from '../output/show.ts';
import { runLiveTop } from './live-top.ts';
import { createTopReader } from './read-top.ts';
import { topPicture } from './top-picture.ts';

export interface TopOptions extends Asking {
  readonly once?: true;
}

/** Shows the live state of a gateway until the user quits, or once in a pipe or file. */
export async function showTop(options: TopOptions): Promise<void> {
  const read = createTopReader(await clientOf(options), defaultBounds);
  const { data, json } = await read();
  if (options.json) return printJson(json);
  if (options.once || !isLive(process.stdout, process.env)) {
    return print(topPicture(data, { nowMs: Date.now() }, screenNow()));
  }
  // The live screen overwrites its previous lines, so it needs the true width of the terminal.
  const screen = () => screenOf(process.stdout, { ...process.env, COLUMNS: undefined });
  const terminal = { output: process.stdout, input: process.stdin, screen };
  await runLiveTop(data, {
    read: async () => (await read()).data,
    terminal,
    ending: process,
    bounds: defaultBounds,
  });
  // The process exits without waiting for an outstanding response.
  process.exit();
}
