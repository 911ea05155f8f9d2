import { Decoder, Encoder } from '@msgpack/msgpack';
import type { WindowsMs } from '../../shared/calendar-windows.ts';
import { isSameLimit, limitsOn } from '../../shared/limits.ts';
import type { BanPolicy, Limit, Limits } from '../../shared/model.ts';
import { noBan, unpackHandBan } from '../bans.ts';
import { type QuotaCall, type QuotaOutcome, reachedIn } from '../decide-key.ts';
import { unpackGrant } from '../grants.ts';
import { emptyQuotaState, type QuotaState, sideOf, trialPrefix } from '../hash.ts';
import type { Concurrency } from '../leases.ts';
import type { Outcome, Run } from '../runs.ts';
import { isThresholdWindow, unpackTold } from '../thresholds.ts';
import type { Unsent } from '../unsent.ts';
import { fieldOf, numberOf, usedFieldOf, usedOf } from '../windows.ts';

/**
 * The arguments and the reply of `decideKeys` (`decide-key.lua`), as records in MessagePack. The arguments are first the terms, and then an
 * ask for each key. Keys with equal terms share a record. The reply is one record.
 */

/** The same in every call for a key. */
interface TermsRecord {
  readonly plan: SideTerms;
  readonly trial?: SideTerms | undefined;
  /** The lowest reported percentage of a limit. */
  readonly lowest?: number | undefined;
}

interface SideTerms {
  readonly bans: BanPolicy;
  /** The hash fields of the strikes and the ban. */
  readonly banFields: readonly string[];
  readonly windows: readonly WindowTerms[];
}

interface WindowTerms {
  /** Finds the limit in a grant (`grants.lua`). */
  readonly grant: string;
  /** Absent if the limit counts all operations. */
  readonly group?: string | undefined;
  /** The hash fields with the number of the window and with its charged units. */
  readonly field: string;
  readonly usedField: string;
  /** 0 for a calendar month. */
  readonly lengthMs: number;
  readonly limit: number;
  /** Whether thresholds of the window are reported. */
  readonly isReported: boolean;
  /** In a trial: the place of the same window of the plan, from 1; 0 if the plan does not limit it. */
  readonly ofPlan?: number | undefined;
}

interface AskRecord {
  /** The place of the terms among the arguments, from 1. */
  readonly terms: number;
  /** Empty if the call only sends `unsent` or the lease. */
  readonly runs: readonly RunRecord[];
  readonly changedMs?: number | undefined;
  readonly leaksReadMs?: number | undefined;
  readonly lease?: Concurrency | undefined;
  readonly unsent?: UnsentRecord | undefined;
}

/** The groups are those that have the operation of the requests. */
interface RunRecord extends Omit<Run, 'operation'> {
  readonly groups?: GroupSet | undefined;
  readonly trialGroups?: GroupSet | undefined;
}

type GroupSet = Readonly<Record<string, true>>;

/** Decided without Redis. `number` and `used` have the order of the windows in the terms. */
interface UnsentRecord {
  readonly strikes: number;
  readonly bannedUntilMs: number;
  readonly banLevel: number;
  readonly liftedMs: number;
  readonly resetMs: number;
  readonly number: readonly number[];
  readonly used: readonly number[];
}

/** The store's clock, epoch ms, and for each key a decision or the reason why there is none. */
export type ReplyRecord = readonly [nowMs: number, ...keys: KeyRecord[]];

export type KeyRecord = SideRecord | Undecided;

/**
 * `stale`: the key has changed since the process read it. `unusable`: this field is no number. `error`: Redis refused to read or write the
 * key.
 */
type Undecided = { readonly stale: true } | { readonly unusable: string } | { readonly error: string };

/**
 * The decision for one side of a key, and its counts after the call. The record of the plan contains the record of the trial. `told` is the
 * hash field once a window has reached the lowest percentage.
 */
type SideRecord = readonly [
  admitted: number,
  refused: number,
  banned: number,
  crowded: number,
  admittedOf: number[] | false,
  liftedMs: number,
  resetMs: number,
  grant: string | false,
  told: string | false,
  trial: SideRecord | false,
  handBan: string | false,
  strikes: number,
  strikesFromMs: number,
  bannedUntilMs: number,
  banLevel: number,
  ...numbersAndUsed: number[],
];

export function packTerms(
  { limits, trial, bans, thresholds }: Pick<QuotaCall, 'limits' | 'trial' | 'bans' | 'thresholds'>,
  windowsMs: WindowsMs,
): Buffer {
  const place = (limit: Limit) => 1 + limits.findIndex((ofPlan) => isSameLimit(ofPlan, limit));
  const sideTerms = (of: Limits, prefix: string): SideTerms => ({
    bans,
    banFields: Object.keys(noBan).map((name) => prefix + name),
    windows: of.map((limit) => ({
      grant: ` ${fieldOf(limit).replaceAll('-', '%-')} (%d+)`,
      group: limit.group,
      field: prefix + fieldOf(limit),
      usedField: prefix + usedFieldOf(limit),
      lengthMs: windowsMs[limit.window],
      limit: limit.max,
      isReported: isThresholdWindow(limit.window),
      ...(prefix !== '' && { ofPlan: place(limit) }),
    })),
  });
  return pack({
    plan: sideTerms(limits, ''),
    trial: trial && sideTerms(trial, trialPrefix),
    lowest: thresholds?.[0],
  } satisfies TermsRecord);
}

/** @param terms the place of the call's terms among the arguments, from 1 */
export function packAsk(call: QuotaCall, terms: number): Buffer {
  if (isOneUnit(call)) {
    oneUnit[terms] ??= pack({ terms, runs: [{ requests: 1, units: 1 }] });
    return oneUnit[terms];
  }
  const { limits, trial = [], runs, changedMs, leaksReadMs, concurrency, unsent } = call;
  return pack({
    terms,
    runs: runs.map(({ operation, ...run }) =>
      operation === undefined
        ? run
        : { ...run, groups: groupsWith(limits, operation), trialGroups: groupsWith(trial, operation) },
    ),
    changedMs,
    leaksReadMs,
    lease: concurrency,
    unsent: unsent && unsentRecord(unsent, limits),
  } satisfies AskRecord);
}

function groupsWith(limits: Limits, operation: string): GroupSet | undefined {
  const names = limitsOn(limits, operation).flatMap(({ group }) => group ?? []);
  return names.length === 0 ? undefined : Object.fromEntries(names.map((name) => [name, true]));
}

/** The most frequent call, one request that costs 1 unit, by the place of the terms. Packed once. */
const oneUnit: Buffer[] = [];

function isOneUnit({ runs, changedMs, leaksReadMs, concurrency, unsent }: QuotaCall): boolean {
  const [run] = runs;
  if (run?.requests !== 1 || run.units !== 1 || runs.length > 1) return false;
  if (run.trialUnits !== undefined || run.operation !== undefined) return false;
  return changedMs === undefined && leaksReadMs === undefined && concurrency === undefined && !unsent;
}

function unsentRecord(unsent: Unsent, limits: Limits): UnsentRecord {
  const { strikes, bannedUntilMs, banLevel, liftedMs, resetMs } = unsent;
  return {
    ...{ strikes, bannedUntilMs, banLevel, liftedMs, resetMs },
    number: limits.map((limit) => numberOf(unsent, limit)),
    used: limits.map((limit) => usedOf(unsent, limit)),
  };
}

export function unpackReply(reply: Buffer): ReplyRecord {
  return decoder.decode(reply) as unknown as ReplyRecord;
}

export function outcomeOf(record: SideRecord, call: QuotaCall, nowMs: number): QuotaOutcome {
  const [told, ofTrial] = [record[8], record[9]];
  const state = stateOf(record, call.limits);
  const reached = told === false ? undefined : reachedIn(state, call, nowMs);
  const outcome = { nowMs, ...decidedIn(record, call), ...(reached && { reached }), state };
  if (ofTrial === false || call.trial === undefined) return outcome;
  const ofTrialState = stateOf(ofTrial, call.trial);
  state.trial = sideOf(ofTrialState);
  return { ...outcome, trial: { ...decidedIn(ofTrial, call), state: ofTrialState } };
}

function decidedIn(
  [admitted, refused, banned, crowded, admittedOf]: SideRecord,
  { runs }: QuotaCall,
): Outcome {
  // The reply to a call with one run has no list.
  return {
    admitted,
    refused,
    banned,
    crowded,
    admittedOf: runs.length === 1 ? [admitted] : admittedOf || [],
  };
}

function stateOf(record: SideRecord, limits: Limits): QuotaState {
  const [, , , , , liftedMs, resetMs, grant, told, , handBan, ...bans] = record;
  const [strikes, strikesFromMs, bannedUntilMs, banLevel] = bans;
  const state: QuotaState = {
    ...emptyQuotaState,
    ...{ strikes, strikesFromMs, bannedUntilMs, banLevel, liftedMs, resetMs },
    grant: grant === false ? undefined : unpackGrant(grant),
    handBan: handBan === false ? undefined : unpackHandBan(handBan),
    told: told === false ? undefined : unpackTold(told),
  };
  for (const [at, limit] of limits.entries()) {
    state[fieldOf(limit)] = record[windowsAt + 2 * at] as number;
    state[usedFieldOf(limit)] = record[windowsAt + 2 * at + 1] as number;
  }
  return state;
}

/** In a `SideRecord`. */
const windowsAt = 15;

/** Shared, because the function `encode` allocates 2 kB for each record, and these would stay with a kept record. */
const encoder = new Encoder({ ignoreUndefined: true });
const decoder = new Decoder();

function pack(record: TermsRecord | AskRecord): Buffer {
  // Packed terms are kept. A copy in the shared pool of `Buffer.from` would keep the whole pool.
  const { buffer, byteOffset, byteLength } = encoder.encode(record);
  return Buffer.from(buffer, byteOffset, byteLength);
}
