import { noCounts, type WindowCounts, type WindowsMs } from '../shared/calendar-windows.ts';
import { type BanPolicy, type Grant, planWindows } from '../shared/model.ts';
import { type BanCounts, bansEndMs, noBan } from './bans.ts';
import { unpackGrant } from './grants.ts';
import { type Told, unpackTold } from './thresholds.ts';
import { type TrialCounts, unpackTrial } from './trial.ts';
import { windowsEndMs } from './windows.ts';

/** The store's state of one key. The members are the fields of the key's Redis hash. Timestamps are epoch ms on the store's clock. */
export interface QuotaState extends WindowCounts, BanCounts {
  /**
   * `liftedMs` is the time at which a ban was last lifted, and `resetMs` the time at which all counts were last reset; 0 for never.
   * These times identify generations of bans and counts. Local decisions from an older generation are dropped.
   */
  liftedMs: number;
  resetMs: number;
  /** Temporary limits that an operator has set. An ended grant may still be stored, but has no effect. */
  grant: Grant | undefined;
  /** The reported thresholds. In the store's reply, the member is undefined while no window has reached the lowest threshold. */
  told: Told | undefined;
  /** The counts of the trial; undefined while they are equal to the counts of the plan. */
  trial?: TrialCounts | undefined;
}

export const emptyQuotaState: Readonly<QuotaState> = Object.freeze({
  ...noCounts,
  ...noBan,
  liftedMs: 0,
  resetMs: 0,
  grant: undefined,
  told: undefined,
});

/** Returns the time from which the state has no effect, epoch ms. The store may then delete the state. */
export function expiresMs(state: Readonly<QuotaState>, bans: BanPolicy, windowsMs: WindowsMs): number {
  return Math.max(
    windowsEndMs(state, planWindows, windowsMs),
    bansEndMs(state, bans),
    state.trial === undefined ? 0 : bansEndMs(state.trial, bans),
    state.liftedMs === 0 ? 0 : state.liftedMs + bans.maxMs,
    state.grant?.untilMs ?? 0,
  );
}

/** Parses a Redis hash. The fields of the hash have the names of the members. */
export function parseHash(hash: Readonly<Record<string, Buffer>>): QuotaState {
  const grant = hash.grant === undefined ? undefined : unpackGrant(String(hash.grant));
  const state: QuotaState = { ...emptyQuotaState, grant, told: unpackTold(String(hash.told ?? '')) };
  if (hash.trial !== undefined) state.trial = unpackTrial(hash.trial);
  for (const field of numberFields) state[field] = Number(hash[field] ?? 0);
  return state;
}

const numberFields = Object.keys(emptyQuotaState).filter(
  (field) => field !== 'grant' && field !== 'told',
) as Exclude<keyof QuotaState, 'grant' | 'told' | 'trial'>[];
