import { setTimeout as sleep } from 'node:timers/promises';
import type { AdminClient, Reply } from '../../../cli/admin/admin-client.ts';
import { clientOf } from '../../../cli/admin/find-gateway.ts';
import { periodQuery } from '../../../cli/admin/period.ts';
import type { Asking, PeriodOptions } from '../../../cli/command.ts';
import { CommandError } from '../../../cli/output/command-error.ts';
import { instant } from '../../../cli/output/figures.ts';
import { progressHere } from '../../../cli/output/progress.ts';
import type { Screen } from '../../../cli/output/screen.ts';
import { show } from '../../../cli/output/show.ts';
import { wrapText } from '../../../shared/terminal/text-width.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { counted } from '../../../shared/words/figures.js';
import { type MakegoodShown, makegoodWire } from '../wires.ts';

export interface MakegoodOptions extends Asking, PeriodOptions {
  readonly upstream?: string | undefined;
  readonly plan?: string | undefined;
  readonly dryRun?: true;
}

/** Gives keys back the units of failed requests. */
export async function makegood({ upstream, plan, dryRun, ...options }: MakegoodOptions): Promise<void> {
  const asked = periodQuery(options, Date.now());
  const client = await clientOf(options);
  const reply = await run(client, { ...asked, upstream, plan, dryRun }, client.bounds);
  const warnings = warningsOf(reply.body, asked);
  for (const warning of warnings) console.error(`warning: ${warning}`);
  show(options, reply, (body, screen) => makegoodLines(body, { upstream, plan }, screen));
  if (reply.body.unreadKeys > 0 || reply.body.behind !== undefined) process.exitCode = 1;
}

/**
 * Requests the parts of a run one after the other. At a terminal, a line shows the number of examined keys.
 *
 * @throws a CommandError
 */
async function run(
  client: Pick<AdminClient, 'ask'>,
  asked: object,
  bounds: Pick<Bounds, 'makegoodRetries' | 'makegoodRetryMs'>,
): Promise<Reply<MakegoodShown>> {
  const ask = (body: object) => client.ask(makegoodWire, { body });
  const progress = progressHere();
  const first = await ask(asked);
  const { from, to, behind } = first.body;
  let last = first;
  while (last.body.next !== undefined) {
    // All parts need the same period, so later parts use the period of the first part.
    const part = { ...asked, from, to, after: last.body.next };
    last = await repeated(() => ask(part), bounds);
    progress.show(last.body.examinedKeys);
  }
  progress.end();
  if (behind === undefined) return last;
  return {
    body: { ...last.body, behind },
    json: { ...Object(last.json), behind: Object(first.json).behind },
  };
}

/**
 * Repeats a request while the gateway is busy or Redis is away. A repeated part gives no unit back twice.
 *
 * @throws a CommandError with the reason and advice
 */
async function repeated<Result>(
  ask: () => Promise<Result>,
  { makegoodRetries, makegoodRetryMs }: Pick<Bounds, 'makegoodRetries' | 'makegoodRetryMs'>,
): Promise<Result> {
  for (let retries = 0; ; retries++) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      if (error.kind !== 'passing' || retries === makegoodRetries) {
        const advice =
          'The run ended early, and some keys got their units back. Run the command again: it continues, and gives no unit back twice.';
        throw new CommandError(`${error.message} ${advice}`, error.kind, error);
      }
      await sleep(makegoodRetryMs);
    }
  }
}

function warningsOf(
  { from, to, behind, unread, unreadKeys }: MakegoodShown,
  asked: ReturnType<typeof periodQuery>,
): string[] {
  const warnings: string[] = [];
  if (Date.parse(asked.from ?? '') < Date.parse(from)) {
    warnings.push(`the usage record begins at ${instant(from)} UTC, so earlier failures are not on record`);
  }
  if (Date.parse(asked.to ?? '') > Date.parse(to)) {
    warnings.push('the period has not ended; run the command again to give later failures back');
  }
  if (behind !== undefined) {
    const names = behind.map(({ host, pid }) => `${pid} on ${host}`).join(', ');
    warnings.push(
      `${counted(behind.length, 'process', 'processes')} did not send the latest counts in time (${names}); run the command again`,
    );
  }
  if (unreadKeys > 0) {
    const more = unreadKeys > unread.length ? ` and ${counted(unreadKeys - unread.length, 'other')}` : '';
    warnings.push(
      `${counted(unreadKeys, 'key')} could not be read or changed (${unread.join(', ')}${more}); run the command again`,
    );
  }
  return warnings;
}

function makegoodLines(
  { from, to, dryRun, keys, failedUnits, creditedKeys, givenBack }: MakegoodShown,
  { upstream, plan }: Pick<MakegoodOptions, 'upstream' | 'plan'>,
  screen: Screen,
): readonly string[] {
  const filters = Object.entries({ upstream, plan }).flatMap(([noun, name]) =>
    name ? [`${noun} ${name}`] : [],
  );
  const which = filters.length === 0 ? '' : ` (${filters.join(', ')})`;
  const period = `from ${instant(from).slice(0, 16)} to ${instant(to).slice(0, 16)} UTC${which}`;
  const units = (of: number) => counted(of, 'unit');
  const lines: string[] = [];
  if (keys === 0) {
    lines.push(`No key was charged for a failed request ${period}, according to the usage record.`);
  } else {
    lines.push(`${counted(keys, 'key')} paid ${units(failedUnits)} for failed requests ${period}.`);
    const { day, month } = givenBack;
    const rest = 'A unit comes back once, and only in a limit a day or a month whose window has not ended.';
    if (creditedKeys === 0) {
      lines.push(`No unit ${dryRun ? 'would be' : 'was'} given back. ${rest}`);
    } else {
      const verb = dryRun ? 'would get' : 'got';
      lines.push(
        `${counted(creditedKeys, 'key')} ${verb} back ${units(day)} of the day and ${units(month)} of the month.`,
      );
      if (Math.max(day, month) < failedUnits) lines.push(rest);
    }
  }
  if (dryRun) lines.push('Nothing was changed (--dry-run).');
  return lines.flatMap((line) => wrapText(line, screen.columns));
}
