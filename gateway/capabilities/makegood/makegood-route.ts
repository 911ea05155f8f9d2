import { randomBytes } from 'node:crypto';
import * as z from 'zod';
import { errorResponse, jsonResponse, nothingChanged, storeUnavailable } from '../../admin/admin-response.ts';
import { defineRoute, type Route } from '../../admin/api/route.ts';
import { behindView } from '../../admin/operations/flush-route.ts';
import { keptPeriod } from '../../admin/operations/kept-period.ts';
import type { Settings } from '../../shared/model.ts';
import { isoOf, type Period } from '../../shared/schema/dates-and-durations.ts';
import { others } from '../../usage/record/key-usage.ts';
import type { Usage } from '../../usage/usage.ts';
import type { OperatorsSources } from '../interfaces/operators.ts';
import type { Credits } from './credits/credits.ts';
import { addParts, noFigures } from './run/add-parts.ts';
import type { RecordedRuns } from './run/recorded-runs.ts';
import { runPart } from './run/run-part.ts';
import { type MakegoodBody, type MakegoodShown, makegoodFigures, makegoodWire } from './wires.ts';

/**
 * `POST /makegood` gives keys back the units that they were charged for failed requests. A run may have many keys, so the gateway works a
 * limited time for a response, and the client requests the next part. Before the first part, all processes send their counts.
 */
export function makegoodRoute(
  credits: Credits,
  runs: Pick<RecordedRuns, 'note'>,
  { keys, usage, readStoreNowMs, flushFleet }: OperatorsSources,
): Route {
  const { bounds } = keys;
  return defineRoute({
    ...makegoodWire,
    needs: 'read',
    async respond({ body, token, author }) {
      if (!body.dryRun && token.may !== 'write') return errorResponse('read_only_token');
      if (usage === undefined) return errorResponse('conflict', notRecorded);
      const nowMs = await readStoreNowMs();
      const period = keptPeriod({ fromMs: body.from, toMs: body.to }, usage.state(), nowMs);
      const fault = faultOf(keys.settings(), body, period, nowMs);
      if (fault !== undefined) return errorResponse('invalid_request', fault);
      const position = body.after === undefined ? firstPosition() : parseCursor(body.after);
      if (position === undefined)
        return errorResponse('invalid_request', 'The member `after` is not the `next` of a previous part.');
      const flushed = body.after === undefined ? await flushFleet() : undefined;
      if (flushed?.isComplete === false) return nothingChanged();

      const { upstream, plan, dryRun: isDryRun } = body;
      const run = {
        name: position.run,
        ...period,
        isDryRun,
        oldestHour: Math.floor(keptFromMs(usage, nowMs) / (60 * bounds.windowsMs.minute)),
        keptUntilMs: usage.keptUntilMs(period.toMs),
      };
      const of = { keys, reader: usage.reader, credits };
      const part = await runPart(of, { period, upstream, plan }, run, position.after);
      const asked = { from: isoOf(period.fromMs), to: isoOf(period.toMs) };
      if (!isDryRun) {
        const noted = { author, asked: { ...asked, upstream, plan }, figures: part.figures };
        runs.note(run.name, noted, part.last === undefined || part.isAway);
      }
      if (part.isAway) return storeUnavailable();
      const figures = addParts(position.figures, part.figures, bounds.makegoodKeysNamedMax);
      return jsonResponse({
        ...asked,
        ...(isDryRun && { dryRun: true }),
        ...figures,
        behind: flushed && flushed.behind.length > 0 ? behindView(flushed.behind) : undefined,
        next: part.last === undefined ? undefined : packCursor({ ...position, after: part.last, figures }),
      } satisfies MakegoodShown);
    },
  });
}

const notRecorded =
  'The usage record is switched off (`usage: { keepDays: 0 }`), so the gateway does not know which requests failed.';

const cursor = z.object({ run: z.string().regex(/^[\w-]{8}$/), after: z.string(), figures: makegoodFigures });

/** The position of a run between two parts: its name, the last key of the previous part, and the figures so far. */
type MakegoodCursor = z.output<typeof cursor>;

function packCursor(position: MakegoodCursor): string {
  return Buffer.from(JSON.stringify(position)).toString('base64url');
}

/** Returns undefined for a text that `packCursor` did not make. */
function parseCursor(text: string): MakegoodCursor | undefined {
  try {
    return cursor.safeParse(JSON.parse(Buffer.from(text, 'base64url').toString())).data;
  } catch {
    return undefined;
  }
}

function firstPosition(): MakegoodCursor {
  return { run: randomBytes(6).toString('base64url'), after: '', figures: noFigures };
}

/** The beginning of the usage record. */
function keptFromMs(usage: Pick<Usage, 'state'>, nowMs: number): number {
  return keptPeriod({ fromMs: 0, toMs: 0 }, usage.state(), nowMs).fromMs;
}

/** @param kept the recorded part of the period */
function faultOf(
  { upstreams, plans }: Pick<Settings, 'upstreams' | 'plans'>,
  { from, to, upstream, plan }: MakegoodBody,
  kept: Period,
  nowMs: number,
): string | undefined {
  const names = upstreams.map(({ name }) => name);
  if (from > to) return 'The member `from` must not be later than `to`.';
  if (from > nowMs) return 'The member `from` must not be in the future.';
  if (kept.fromMs > kept.toMs)
    return `The period is before the beginning of the usage record, ${isoOf(kept.fromMs)}.`;
  if (upstream !== undefined && upstream !== others && !names.includes(upstream))
    return `There is no upstream with the name in \`upstream\`. The upstreams are ${names.join(', ')}.`;
  if (plan !== undefined && !plans.has(plan)) return 'There is no plan with the name in `plan`.';
  return undefined;
}
