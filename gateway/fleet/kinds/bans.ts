import type { BanPolicy } from '../../shared/model.ts';
import { isoOf } from '../../shared/schema/dates-and-durations.ts';
import { ending, figure, minuteMs } from '../../shared/words/figures.js';
import { durationText, ordinal, timeText, whoOf } from '../wording.ts';
import { aboutKey, exampleKey, type ListedKinds, webhook } from './kind.ts';

interface Ban {
  readonly kind: 'ban';
  readonly keyId: string;
  readonly plan: string | undefined;
  /** 1 for the first of consecutive bans. A ban by hand does not change it. */
  readonly level: number;
  /** Whether an operator made the ban, and why. */
  readonly byHand?: boolean | undefined;
  readonly reason?: string | undefined;
  /** On the store's clock, epoch ms. */
  readonly untilMs: number;
}

interface BanEnded {
  readonly kind: 'ban_ended';
  readonly keyId: string;
  readonly plan: string | undefined;
  readonly untilMs: number;
  /** `lifted`: removed before it expired. */
  readonly ended: 'expired' | 'lifted';
}

export type BanEvent = Ban | BanEnded;

/** The text names the rule that caused the ban. */
export type BanNotice = (Ban & { readonly policy: BanPolicy }) | BanEnded;

const entry = ({ keyId, plan, untilMs }: BanEvent) => ({ key: keyId, plan, untilAt: isoOf(untilMs) });

/** A process detects a ban only when it serves a request of the key. Reports of one ban may therefore be far apart. */
const identity = ({ keyId, untilMs }: BanEvent) =>
  ({ kind: 'once', what: [keyId, untilMs], untilMs }) as const;

export const banKinds: ListedKinds<BanNotice> = {
  ban: {
    ...aboutKey,
    text(ban, nowMs) {
      const { level, untilMs, policy, byHand, reason } = ban;
      if (byHand) {
        const because = reason === undefined ? '' : `: ${reason}`;
        return `${whoOf(ban)} is banned by an operator, until ${ending(untilMs)}${because}.`;
      }
      const lengthMs = Math.min(policy.forMs * 2 ** (level - 1), policy.maxMs);
      const nth = level > 1 ? `, for the ${ordinal(level)} time in a row` : '';
      const cause = `${figure(policy.after)} of its requests were refused within ${durationText(policy.withinMs)}`;
      return `${whoOf(ban)} is banned for ${durationText(lengthMs)}, until ${timeText(untilMs, nowMs)}${nth}: ${cause}.`;
    },
    identity,
    list: { group: 'ban', many: 'keys were banned', entry },
    webhook: webhook({
      typeOf: () => 'key.banned',
      when: { 'key.banned': 'A key is banned after too many refusals, or by an operator.' },
      data: (z) => ({
        key: z.string(),
        plan: z.string().optional(),
        level: z.int().describe('Counts consecutive bans. A ban by an operator does not change it.'),
        untilAt: z.iso.datetime(),
        byHand: z.boolean().optional().describe('True for a ban by an operator, otherwise absent.'),
        reason: z.string().optional().describe('The reason that the operator stated.'),
      }),
      members: ({ keyId: key, plan, level, untilMs, byHand, reason }) => ({
        key,
        plan,
        level,
        untilAt: isoOf(untilMs),
        byHand,
        reason,
      }),
      examples: (nowMs) => [
        {
          kind: 'ban',
          ...exampleKey,
          level: 1,
          untilMs: nowMs + 10 * minuteMs,
          policy: { after: 100, withinMs: minuteMs, forMs: 10 * minuteMs, maxMs: 1_440 * minuteMs },
        },
      ],
    }),
  },
  ban_ended: {
    ...aboutKey,
    text: (ended) => `The ban of ${whoOf(ended)} ${ended.ended === 'lifted' ? 'was lifted' : 'expired'}.`,
    identity,
    list: { group: 'ban', many: 'bans ended', entry },
    webhook: webhook({
      typeOf: () => 'key.unbanned',
      when: { 'key.unbanned': 'A ban has expired, or was lifted.' },
      data: (z) => ({
        key: z.string(),
        plan: z.string().optional(),
        ended: z.enum(['expired', 'lifted']),
        untilAt: z.iso.datetime(),
      }),
      members: ({ keyId: key, plan, ended, untilMs }) => ({ key, plan, ended, untilAt: isoOf(untilMs) }),
      examples: (nowMs) => [{ kind: 'ban_ended', ...exampleKey, untilMs: nowMs, ended: 'expired' }],
    }),
  },
};
