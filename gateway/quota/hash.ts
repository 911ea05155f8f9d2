import { noCounts, type WindowsMs } from '../shared/calendar-windows.ts';
import type { BanPolicy, Grant } from '../shared/model.ts';
import { bansEndMs, type HandBan, noBan, type SideCounts, unpackHandBan } from './bans.ts';
import { unpackGrant } from './grants.ts';
import { type Told, unpackTold } from './thresholds.ts';
import { noneIn, windowsEndMs } from './windows.ts';

/** The fields of a key's Redis hash. Epoch ms on the store's clock. */
export interface QuotaState extends SideCounts {
  /**
   * When a ban was last lifted, and all counts were last reset; 0 for never. These generations make the store drop older local decisions.
   */
  liftedMs: number;
  resetMs: number;
  /** An ended grant may still be stored, but has no effect. */
  grant: Grant | undefined;
  /** The last ban by an operator; `handBanOf` tells whether it is the present ban. */
  handBan: HandBan | undefined;
  /** In the store's reply, undefined while no window has reached the lowest threshold. */
  told: Told | undefined;
  /** Undefined while the trial has not begun. */
  trial?: Readonly<SideCounts> | undefined;
}

export const emptyQuotaState: Readonly<QuotaState> = Object.freeze({
  ...noCounts,
  ...noBan,
  liftedMs: 0,
  resetMs: 0,
  grant: undefined,
  handBan: undefined,
  told: undefined,
});

/** The time from which the state has no effect, epoch ms. The store may then delete it. */
export function expiresMs(state: Readonly<QuotaState>, bans: BanPolicy, windowsMs: WindowsMs): number {
  const sideEndMs = (side: Readonly<SideCounts>) =>
    Math.max(windowsEndMs(side, windowsMs), bansEndMs(side, bans));
  return Math.max(
    sideEndMs(state),
    state.trial === undefined ? 0 : sideEndMs(state.trial),
    state.liftedMs === 0 ? 0 : state.liftedMs + bans.maxMs,
    state.grant?.untilMs ?? 0,
  );
}

export function parseHash(hash: Readonly<Record<string, Buffer>>): QuotaState {
  const grant = hash.grant === undefined ? undefined : unpackGrant(String(hash.grant));
  const handBan = hash.handBan === undefined ? undefined : unpackHandBan(String(hash.handBan));
  const state: QuotaState = { ...emptyQuotaState, grant, handBan, told: unpackTold(String(hash.told ?? '')) };
  Object.assign(state, parseSide(hash, ''));
  for (const field of ['liftedMs', 'resetMs'] as const) state[field] = Number(hash[field] ?? 0);
  if (hash[`${trialPrefix}strikes`] !== undefined) state.trial = parseSide(hash, trialPrefix);
  return state;
}

export const trialPrefix = 'trial:';

function parseSide(hash: Readonly<Record<string, Buffer>>, prefix: string): SideCounts {
  const side: SideCounts = { ...noCounts, ...noBan };
  for (const field of [...countNames, ...groupFields(hash, prefix)])
    side[field] = Number(hash[`${prefix}${field}`] ?? 0);
  return side;
}

/** Without the windows of groups. */
const countNames = Object.keys({ ...noCounts, ...noBan }) as (keyof SideCounts)[];

/** Group fields with the prefix. A side does not have the fields of the other side. */
function groupFields(
  hash: Readonly<Record<string, unknown>>,
  prefix: string,
): readonly `${string}:${string}`[] {
  const names = Object.keys(hash)
    .filter((field) => field.startsWith(prefix))
    .map((field) => field.slice(prefix.length));
  return names.filter(
    (name): name is `${string}:${string}` => name.includes(':') && !name.startsWith(trialPrefix),
  );
}

export function sideOf(state: Readonly<SideCounts>): SideCounts {
  const side: SideCounts = { ...noneIn(state), ...noBan };
  for (const field of Object.keys(side) as (keyof SideCounts)[]) side[field] = state[field] ?? 0;
  return side;
}
