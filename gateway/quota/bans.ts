import type { WindowCounts } from '../shared/calendar-windows.ts';
import type { BanPolicy } from '../shared/model.ts';

/** Of a side. Epoch ms on the store's clock. */
export interface BanCounts {
  /** Refusals that count towards the next ban, and the time of the first. */
  strikes: number;
  strikesFromMs: number;
  bannedUntilMs: number;
  /** Bans in a row. The next ban lasts `forMs` × 2^`banLevel`, but at most `maxMs`. */
  banLevel: number;
}

/** The state that one decision reads and changes: the counts of windows, the strikes and the ban of a plan or of a trial. */
export type SideCounts = WindowCounts & BanCounts;

/** A ban that an operator has made (`bans.lua`). */
export interface HandBan {
  /** Epoch ms on the store's clock. */
  readonly untilMs: number;
  readonly reason?: string | undefined;
}

export function packHandBan({ untilMs, reason = '' }: HandBan): string {
  return `${untilMs} ${reason}`;
}

export function unpackHandBan(packed: string): HandBan {
  const [untilMs = ''] = packed.split(' ', 1);
  const reason = packed.slice(untilMs.length + 1);
  return { untilMs: Number(untilMs), ...(reason !== '' && { reason }) };
}

/** The present or last ban if an operator made it. */
export function handBanOf({
  bannedUntilMs,
  handBan,
}: Readonly<Pick<BanCounts, 'bannedUntilMs'>> & { readonly handBan: HandBan | undefined }):
  | HandBan
  | undefined {
  return handBan?.untilMs === bannedUntilMs ? handBan : undefined;
}

/** Without a change of the level. A ban that ends later stays. */
export function banByHand(counts: BanCounts, { untilMs }: HandBan): void {
  counts.bannedUntilMs = Math.max(untilMs, counts.bannedUntilMs);
}

export const noBan: Readonly<BanCounts> = { strikes: 0, strikesFromMs: 0, bannedUntilMs: 0, banLevel: 0 };

export function banOf({ strikes, strikesFromMs, bannedUntilMs, banLevel }: Readonly<BanCounts>): BanCounts {
  return { strikes, strikesFromMs, bannedUntilMs, banLevel };
}

export function isBanned({ bannedUntilMs }: Readonly<BanCounts>, nowMs: number): boolean {
  return bannedUntilMs > nowMs;
}

export function ban(counts: BanCounts, bans: BanPolicy, nowMs: number): void {
  if (nowMs >= counts.bannedUntilMs + bans.maxMs) counts.banLevel = 0;
  counts.bannedUntilMs = nowMs + Math.min(bans.forMs * 2 ** counts.banLevel, bans.maxMs);
  counts.banLevel += 1;
  counts.strikes = 0;
  counts.strikesFromMs = 0;
}

/** The strikes that count towards the next ban at `nowMs`. Those of a store end with the next request. */
export function countingStrikes(
  { strikes, strikesFromMs }: Readonly<Pick<BanCounts, 'strikes' | 'strikesFromMs'>>,
  { withinMs }: Pick<BanPolicy, 'withinMs'>,
  nowMs: number,
): number {
  return nowMs < strikesFromMs + withinMs ? strikes : 0;
}

export function endStrikes(counts: BanCounts, bans: BanPolicy, nowMs: number): void {
  if (counts.strikes === countingStrikes(counts, bans, nowMs)) return;
  counts.strikes = 0;
  counts.strikesFromMs = 0;
}

export function addStrikes(counts: BanCounts, strikes: number, nowMs: number): void {
  if (counts.strikes === 0) counts.strikesFromMs = nowMs;
  counts.strikes += strikes;
}

/** @returns the number of refusals before the ban */
export function strike(counts: BanCounts, refusals: number, bans: BanPolicy, nowMs: number): number {
  const before = Math.min(refusals, Math.max(0, bans.after - 1 - counts.strikes));
  if (refusals > before) ban(counts, bans, nowMs);
  else addStrikes(counts, before, nowMs);
  return before;
}

/** The time from which the strikes and the ban have no effect, epoch ms. */
export function bansEndMs(counts: Readonly<BanCounts>, bans: BanPolicy): number {
  return Math.max(
    counts.strikes === 0 ? 0 : counts.strikesFromMs + bans.withinMs,
    counts.bannedUntilMs === 0 ? 0 : counts.bannedUntilMs + bans.maxMs,
  );
}
