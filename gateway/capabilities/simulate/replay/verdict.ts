import type { PlanAdvice } from '../../../shared/model.ts';
import { isoSecondOf } from '../../../shared/schema/dates-and-durations.ts';
import { isUncertain } from '../words.js';
import type { KeyVerdict } from './replay-key.ts';
import type { EditedStep } from './replayed-key.ts';

/** Requests of some keys as recorded (now) and under the edited limits (then). */
export interface Totals {
  /** The number of keys that sent requests. */
  readonly keys: number;
  readonly offered: number;
  readonly refusedNow: number;
  readonly refusedThen: number;
  readonly refusedThenMin: number;
  readonly refusedThenMax: number;
  readonly keysRefusedMore: number;
  readonly keysRefusedLess: number;
  /** The number of keys of which it is not certain whether more or fewer requests are refused. */
  readonly keysUncertain: number;
  /** The number of keys that had a grant in the period, and of keys whose limits changed in the period. */
  readonly keysGranted: number;
  readonly keysChanged: number;
  /** The number of keys that have no recorded refusals, but some under the edited limits. */
  readonly newlyLimitedKeys: number;
  /** The number of keys that have recorded refusals, but none under the edited limits. */
  readonly freedKeys: number;
}

export interface PlanTotals extends Totals, PlanAdvice {
  readonly name: string;
}

export interface KeyLine {
  readonly id: string;
  readonly plan: string;
  readonly offered: number;
  readonly refusedNow: number;
  readonly refusedThen: number;
  /** The bounds of `refusedThen`, set only if they differ. */
  readonly refusedThenMin?: number | undefined;
  readonly refusedThenMax?: number | undefined;
  /** The first minute with a refusal in the estimate; absent if no refusal is certain. */
  readonly firstRefusedAt?: string | undefined;
  readonly censoredMinutes: number;
}

/** A minute in which the replay under the limits of its time differs from the record. */
export interface Difference {
  readonly at: string;
  readonly keys: number;
  /** The ids of some keys whose replay differs in this minute. */
  readonly of: readonly string[];
  readonly recordedRefusals: number;
  readonly replayedRefusals: number;
  readonly why?: string | undefined;
  /** Whether the limits of one of the keys changed in this minute or the one before. */
  readonly limitsChanged?: true | undefined;
}

/** The result of a simulation. Timestamps are ISO 8601, in UTC. */
export interface Verdict {
  readonly reproduced: {
    readonly recordedRefusals: number;
    readonly replayedRefusals: number;
    readonly minutesThatDiffer: number;
    /** The first minutes in which the replay differs from the record. */
    readonly differences: readonly Difference[];
  };
  readonly totals: Totals;
  readonly plans: readonly PlanTotals[];
  /** The keys with recorded refusals, or refusals under the edited limits, the largest change first. */
  readonly keys: readonly KeyLine[];
  /** The number of keys with refusals that `keys` does not list. */
  readonly moreKeys: number;
}

export interface VerdictSizes {
  readonly keysListed: number;
  readonly differencesListed: number;
}

const namesPerDifference = 5;

export class VerdictBuilder {
  private readonly minuteMs: number;
  private readonly plans = new Map<string, { -readonly [Name in keyof Totals]: number }>();
  private readonly lines: KeyLine[] = [];
  private readonly differing = new Map<
    number,
    { keys: number; of: string[]; recorded: number; replayed: number; limitsChanged?: true }
  >();
  private recordedRefusals = 0;
  private replayedRefusals = 0;

  constructor(minuteMs: number) {
    this.minuteMs = minuteMs;
  }

  /** @param steps the limits of the key over time */
  differs(
    { id, steps }: { readonly id: string; readonly steps: readonly EditedStep[] },
    minute: number,
    recorded: number,
    replayed: number,
  ): void {
    const known = this.differing.get(minute) ?? { keys: 0, of: [], recorded: 0, replayed: 0 };
    if (steps.slice(1).some(({ fromMinute }) => minute - fromMinute === 0 || minute - fromMinute === 1))
      known.limitsChanged = true;
    this.differing.set(minute, known);
    known.keys += 1;
    if (known.of.length < namesPerDifference) known.of.push(id);
    known.recorded += recorded;
    known.replayed += replayed;
  }

  /** @param had whether the key had a grant, or a change of its limits, in the period */
  add(
    { id, plan }: { readonly id: string; readonly plan: string },
    verdict: KeyVerdict,
    had: { readonly grant: boolean; readonly change: boolean },
  ): void {
    const { offered, refusedNow, refusedThen, refusedThenMin, refusedThenMax, censoredMinutes } = verdict;
    this.recordedRefusals += verdict.recordedRefusals;
    this.replayedRefusals += verdict.replayedRefusals;
    if (offered === 0) return;
    const totals = this.plans.get(plan) ?? { ...noTotals };
    this.plans.set(plan, totals);
    totals.keys += 1;
    totals.offered += offered;
    totals.refusedNow += refusedNow;
    totals.refusedThen += refusedThen;
    totals.refusedThenMin += refusedThenMin;
    totals.refusedThenMax += refusedThenMax;
    if (isUncertain(verdict)) totals.keysUncertain += 1;
    else if (refusedThen > refusedNow) totals.keysRefusedMore += 1;
    else if (refusedThen < refusedNow) totals.keysRefusedLess += 1;
    if (refusedNow === 0 && refusedThenMin > 0) totals.newlyLimitedKeys += 1;
    if (refusedNow > 0 && refusedThenMax === 0) totals.freedKeys += 1;
    if (had.grant) totals.keysGranted += 1;
    if (had.change) totals.keysChanged += 1;
    if (refusedNow === 0 && refusedThenMax === 0) return;
    this.lines.push({
      id,
      plan,
      offered,
      refusedNow,
      refusedThen,
      ...(refusedThenMin < refusedThenMax && { refusedThenMin, refusedThenMax }),
      ...(refusedThenMin > 0 && {
        firstRefusedAt: isoSecondOf(verdict.firstRefusedMinute * this.minuteMs),
      }),
      censoredMinutes,
    });
  }

  /** @param adviceOn what capabilities add to the figures of a plan */
  finish({ keysListed, differencesListed }: VerdictSizes, adviceOn: (plan: string) => PlanAdvice): Verdict {
    const { recordedRefusals, replayedRefusals } = this;
    const differences = [...this.differing]
      .sort(([a], [b]) => a - b)
      .slice(0, differencesListed)
      .map(([minute, { recorded, replayed, ...of }]) => {
        const at = isoSecondOf(minute * this.minuteMs);
        return { at, ...of, recordedRefusals: recorded, replayedRefusals: replayed };
      });
    const minutesThatDiffer = this.differing.size;
    const plans = [...this.plans].map(([name, totals]) => ({ name, ...totals, ...adviceOn(name) }));
    return {
      reproduced: { recordedRefusals, replayedRefusals, minutesThatDiffer, differences },
      totals: sumOf(plans),
      plans: plans.sort((a, b) => (a.name < b.name ? -1 : 1)),
      ...listed(this.lines, keysListed),
    };
  }
}

/** Merges two verdicts about different keys in the same period. */
export function merge(
  one: Verdict,
  other: Verdict,
  { keysListed, differencesListed }: VerdictSizes,
): Verdict {
  const differences = new Map<string, Difference>();
  for (const difference of [...one.reproduced.differences, ...other.reproduced.differences]) {
    const known = differences.get(difference.at);
    differences.set(difference.at, known === undefined ? difference : mergeDifferences(known, difference));
  }
  const all = [...differences.values()].sort((a, b) => (a.at < b.at ? -1 : 1));
  const unlisted = [one, other].map(
    ({ reproduced }) => reproduced.minutesThatDiffer - reproduced.differences.length,
  );
  const plans = Map.groupBy([...one.plans, ...other.plans], ({ name }) => name);
  const { keys, moreKeys } = listed([...one.keys, ...other.keys], keysListed);
  return {
    reproduced: {
      recordedRefusals: one.reproduced.recordedRefusals + other.reproduced.recordedRefusals,
      replayedRefusals: one.reproduced.replayedRefusals + other.reproduced.replayedRefusals,
      minutesThatDiffer: all.length + Math.max(...unlisted),
      differences: all.slice(0, differencesListed),
    },
    totals: sumOf([one.totals, other.totals]),
    plans: [...plans].map(([name, totals]) => ({ name, ...sumOf(totals), ...largestAdvice(totals) })),
    keys,
    moreKeys: one.moreKeys + other.moreKeys + moreKeys,
  };
}

/** The largest of each figure of capabilities in several parts, as an estimate for all keys together. */
function largestAdvice(parts: readonly PlanTotals[]): PlanAdvice {
  const figures = parts.flatMap((part) =>
    Object.entries(part).filter(([name]) => name !== 'name' && !Object.hasOwn(noTotals, name)),
  );
  const byName = Map.groupBy(figures, ([name]) => name);
  return Object.fromEntries(
    [...byName].map(([name, all]) => [name, Math.max(...all.map(([, figure]) => figure))]),
  );
}

function mergeDifferences(one: Difference, other: Difference): Difference {
  return {
    ...one,
    keys: one.keys + other.keys,
    of: [...one.of, ...other.of].slice(0, namesPerDifference),
    recordedRefusals: one.recordedRefusals + other.recordedRefusals,
    replayedRefusals: one.replayedRefusals + other.replayedRefusals,
  };
}

function listed(lines: readonly KeyLine[], keysMax: number): Pick<Verdict, 'keys' | 'moreKeys'> {
  const changeOf = ({ refusedNow, refusedThen }: KeyLine) => Math.abs(refusedThen - refusedNow);
  const sorted = lines.toSorted((a, b) => changeOf(b) - changeOf(a) || b.refusedThen - a.refusedThen);
  return { keys: sorted.slice(0, keysMax), moreKeys: Math.max(0, lines.length - keysMax) };
}

export const noTotals: Totals = {
  keys: 0,
  offered: 0,
  refusedNow: 0,
  refusedThen: 0,
  refusedThenMin: 0,
  refusedThenMax: 0,
  keysRefusedMore: 0,
  keysRefusedLess: 0,
  keysUncertain: 0,
  keysGranted: 0,
  keysChanged: 0,
  newlyLimitedKeys: 0,
  freedKeys: 0,
};

function sumOf(all: readonly Totals[]): Totals {
  const sum = { ...noTotals } as { -readonly [Name in keyof Totals]: number };
  for (const totals of all) {
    for (const name of Object.keys(noTotals) as (keyof Totals)[]) sum[name] += totals[name];
  }
  return sum;
}
