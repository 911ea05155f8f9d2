import { requestIdStart } from '../../admin/words/request-story.js';
import { oneLine } from '../../shared/terminal/text-width.ts';
import { defaultBounds } from '../../shared/timeouts-and-sizes.ts';
import { minuteAt } from '../admin/period.ts';
import { clientAfterFlush } from '../admin/read/flush-counts.ts';
import { readMinute, readWhy } from '../admin/read/read-key.ts';
import type { Asking } from '../command.ts';
import { CommandError } from '../output/command-error.ts';
import { show, tellMissing } from '../output/show.ts';

export interface WhyOptions extends Asking {
  readonly log?: readonly string[];
  readonly at?: string;
}

/** Explains the responses of a key, its refusals in one minute, or what happened to a request. */
export async function why(given: string | undefined, options: WhyOptions): Promise<void> {
  if (options.at !== undefined) return whyMinute(given, options.at, options);
  const { id, files } = idAndFiles(given, options.log);
  if (files !== undefined) {
    const { whyRequest } = await import('./find-request.ts');
    const search = { requestId: id, files, stdin: process.stdin };
    const { entry, story } = await whyRequest(search, defaultBounds);
    return show(options, { json: entry, body: story }, (text) => [text]);
  }
  try {
    const { body, json } = await readWhy(await clientAfterFlush(options), id);
    tellMissing(json);
    show(options, { json: Object(json).why, body: body.why }, ({ sentence }) => [oneLine(sentence)]);
  } catch (error) {
    if (requestId.test(id)) throw needsLog(id, error);
    throw requestIdStart.test(id) ? mayNeedLog(id, error) : error;
  }
}

/** Explains the refusals of a key in one minute, one kind of refusal on each line. */
async function whyMinute(id: string | undefined, at: string, options: WhyOptions): Promise<void> {
  if (id === undefined) throw new CommandError('Which key? Give the id of a key before --at.');
  if (options.log !== undefined)
    throw new CommandError(
      '--at explains a minute of a key from the usage record, and --log explains one request from a log. Give one of them.',
    );
  const minute = minuteAt(at, Date.now());
  const reply = await readMinute(await clientAfterFlush(options), id, minute);
  show(options, reply, ({ sentence, refusals, notes }) =>
    [sentence, ...refusals.map((one) => one.sentence), ...notes].map(oneLine),
  );
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

/** A whole `X-Request-Id`. */
const requestId = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** @param error the reason why the key could not be read */
function needsLog(id: string, error: unknown): unknown {
  if (!(error instanceof CommandError)) return error;
  const asKey =
    error.kind === 'not_found' ? '' : ` It could not be looked up as the id of a key: ${error.message}`;
  return new CommandError(`${id} looks like the id of a request: ${setLog}${asKey}`);
}

/** The id of a key may have the form of the beginning of a request's id. */
function mayNeedLog(id: string, error: unknown): unknown {
  if (!(error instanceof CommandError && error.kind === 'not_found')) return error;
  return new CommandError(
    `${error.message} If ${id} is the beginning of the id of a request, ${setLog}`,
    'not_found',
  );
}

const setLog = 'set --log FILE to the log of the gateway, or --log - for standard input.';
