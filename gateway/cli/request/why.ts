import { oneLine } from '../../shared/terminal/text-width.ts';
import { defaultBounds } from '../../shared/timeouts-and-sizes.ts';
import { clientAfterFlush } from '../admin/read/flush-counts.ts';
import { readKey } from '../admin/read/read-key.ts';
import type { Asking } from '../command.ts';
import { CommandError } from '../output/command-error.ts';
import { show } from '../output/show.ts';
import { isRequestId, needsLog, whyRequest } from './find-request.ts';

export interface WhyOptions extends Asking {
  readonly log?: readonly string[];
}

/** Explains the responses of a key, or what happened to a request. */
export async function why(given: string | undefined, options: WhyOptions): Promise<void> {
  const { id, files } = idAndFiles(given, options.log);
  if (files !== undefined) {
    const search = { requestId: id, files, stdin: process.stdin };
    const { entry, story } = await whyRequest(search, defaultBounds);
    return show(options, { json: entry, body: story }, (text) => [text]);
  }
  try {
    const { body, json } = await readKey(await clientAfterFlush(options), id);
    show(options, { json: Object(json).why, body: body.why }, ({ sentence }) => [oneLine(sentence)]);
  } catch (error) {
    throw isRequestId(id) ? needsLog(id, error) : error;
  }
}

/** Commander treats an argument after the files of `--log` as one more file. */
function idAndFiles(id: string | undefined, log: readonly string[] | undefined) {
  if (id !== undefined) return { id, files: log };
  const last = log?.at(-1);
  if (log !== undefined && last !== undefined && log.length > 1) return { id: last, files: log.slice(0, -1) };
  throw new CommandError(
    'Which key or request? Give the id of a key, or the id of a request and --log FILE.',
  );
}
