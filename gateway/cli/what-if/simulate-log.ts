import type { Readable } from 'node:stream';
import { calendarWindowsMs } from '../../shared/calendar-windows.ts';
import { type Key, planWindows } from '../../shared/model.ts';
import { type KeyMinutes, KeyMinutesBuilder } from '../../usage/key-minutes.ts';
import { type Edits, isEdited, termsThen } from '../../usage/simulate/edits.ts';
import { type Circumstance, explainDifference } from '../../usage/simulate/explain-difference.ts';
import { replayKey } from '../../usage/simulate/replay-key.ts';
import { VerdictBuilder } from '../../usage/simulate/verdict.ts';
import { outcomes } from '../../usage/tally.ts';
import { CommandError } from '../output/command-error.ts';
import { type LogBounds, linesOf, parseEntry } from '../request/log-lines.ts';
import { type Tried, toEdit } from './edits-between.ts';
import type { Progress } from './progress.ts';
import type { Shown } from './settings-shown.ts';
import type { Simulation } from './simulation-shape.ts';

const minuteMs = 60_000;

export interface LogSimulation {
  /** Names of files; `-` is standard input. */
  readonly files: readonly string[];
  readonly stdin: Readable;
  readonly present: Shown;
  readonly tried: Tried;
  readonly fromMs: number | undefined;
  readonly toMs: number | undefined;
}

/**
 * The same simulation over access lines of the gateway in place of the record: each says which key, when, and what was decided.
 * A request is decided when it begins, which is its line's time without how long it took.
 *
 * @throws a CommandError when a file cannot be read, or has no access line of a key
 */
export async function simulateLog(
  { files, stdin, present, tried, fromMs, toMs }: LogSimulation,
  progress: Progress,
  bounds: LogBounds,
): Promise<Simulation> {
  const log = await readLog({ files, stdin, toMs }, progress, bounds);
  if (log.firstMs === undefined) {
    throw new CommandError(
      'The log has no line about a request of a key: the JSON lines of the gateway are read, whole or compressed.',
    );
  }
  const { bans, keys, plans } = present.settings;
  const edits: Edits = {
    plans: new Map(Object.entries(tried.plans ?? {}).map(([name, fields]) => [name, toEdit(fields)])),
    keys: new Map(Object.entries(tried.keys ?? {}).map(([id, fields]) => [id, toEdit(fields)])),
    bans: tried.bans,
  };
  const isEdit = edits.plans.size + edits.keys.size > 0 || edits.bans !== undefined;
  const from = Math.floor((fromMs ?? log.firstMs) / minuteMs);
  const builder = new VerdictBuilder(minuteMs);
  let activeKeys = 0;
  const terms = { plans: new Map(plans.map(({ name, windows }) => [name, { limits: windows }])), bans };
  for (const { id, plan, windows: limits, disabled } of keys) {
    const key: Key = { id, plan, limits, disabled };
    const minutes = log.keys.get(id);
    if (minutes === undefined || (isEdit && !isEdited(edits, key))) continue;
    activeKeys += 1;
    const verdict = replayKey(
      {
        minutes: finish(minutes),
        fromMinute: from,
        present: { limits, bans },
        edited: termsThen(key, edits, terms),
      },
      { minuteMs, windowsMs: calendarWindowsMs },
      (...difference) => builder.differs(id, ...difference),
    );
    builder.add(key, verdict);
  }
  const verdict = builder.finish({ keysListed: Number.POSITIVE_INFINITY, differencesListed: 1_000 });
  const { reproduced } = verdict;
  return {
    from: new Date(from * minuteMs).toISOString(),
    to: new Date(toMs ?? log.lastMs).toISOString(),
    source: 'log',
    ...verdict,
    reproduced: {
      ...reproduced,
      differences: reproduced.differences.map((one) => ({
        ...one,
        why: explainDifference(one, log.circumstances),
      })),
    },
    activeKeys,
    examinedKeys: activeKeys,
  };
}

/** By minute, requests by outcome. */
type Minutes = Map<number, number[]>;

interface Log {
  readonly keys: ReadonlyMap<string, Minutes>;
  readonly circumstances: readonly Circumstance[];
  readonly firstMs: number | undefined;
  readonly lastMs: number;
}

async function readLog(
  { files, stdin, toMs = Number.POSITIVE_INFINITY }: Pick<LogSimulation, 'files' | 'stdin' | 'toMs'>,
  progress: Progress,
  bounds: LogBounds,
): Promise<Log> {
  const keys = new Map<string, Minutes>();
  const circumstances: Circumstance[] = [];
  let [firstMs, lastMs]: [number | undefined, number] = [undefined, 0];
  let [lines, config, isAway] = [0, '', false];
  for (const file of files) {
    for await (const line of linesOf(file, stdin, bounds)) {
      lines += 1;
      if (lines % 100_000 === 0) progress.show(lines, lines);
      const entry = line.includes(member) ? parseEntry(line) : undefined;
      const outcome = entry === undefined ? -1 : outcomeOf(entry);
      if (entry === undefined || outcome === -1) continue;
      const atMs = Date.parse(String(entry.time)) - Number(entry.totalMs ?? 0);
      if (Number.isNaN(atMs) || atMs > toMs) continue;
      firstMs = Math.min(firstMs ?? atMs, atMs);
      lastMs = Math.max(lastMs, atMs);
      if (entry.config !== config) {
        if (config !== '')
          circumstances.push({
            kind: 'reload',
            atMs,
            text: `from ${config} on ${entry.config} is in force.`,
          });
        config = String(entry.config);
      }
      if ((entry.source === 'local') !== isAway) {
        isAway = !isAway;
        const text = 'requests were decided by each process alone ("source":"local").';
        circumstances.push({ kind: isAway ? 'store_away' : 'store_back', atMs, text });
      }
      count(keys, String(entry.keyId), Math.floor(atMs / minuteMs), outcome);
    }
  }
  progress.end();
  return { keys, circumstances: circumstances.sort((a, b) => a.atMs - b.atMs), firstMs, lastMs };
}

const member = Buffer.from('"decision":"');

/** Its number; -1 for a line that is about no key's limits. */
function outcomeOf({ keyId, decision, window }: Readonly<Record<string, unknown>>): number {
  if (keyId === undefined) return -1;
  switch (decision) {
    case 'admitted':
    case 'banned':
      return outcomes.indexOf(decision);
    case 'unavailable':
      return outcomes.indexOf('undecided');
    case 'refused':
      // A bucket's refusal is charged to no quota.
      return outcomes.findIndex((outcome) => outcome === window && planWindows.includes(window as never));
    default:
      return -1;
  }
}

function count(keys: Map<string, Minutes>, id: string, minute: number, outcome: number): void {
  const minutes = keys.get(id) ?? new Map<number, number[]>();
  keys.set(id, minutes);
  const byOutcome = minutes.get(minute) ?? [];
  minutes.set(minute, byOutcome);
  byOutcome[outcome] = (byOutcome[outcome] ?? 0) + 1;
}

function finish(minutes: Minutes): KeyMinutes {
  const builder = new KeyMinutesBuilder();
  for (const [minute, byOutcome] of [...minutes].sort(([a], [b]) => a - b)) {
    for (const [outcome, requests] of byOutcome.entries())
      if (requests) builder.add(minute, outcome, requests);
  }
  return builder.finish();
}
