import { isoOf } from '../../shared/schema/dates-and-durations.ts';
import { figure, percent } from '../../shared/words/figures.js';
import { durationText, timeText } from '../wording.ts';
import { aboutNoKey, type ListedKinds, webhook } from './kind.ts';

/** Many requests to an upstream fail, or no longer fail. */
export type UpstreamFailureEvent =
  | {
      readonly kind: 'upstream_failing';
      readonly upstream: string;
      /** The requests of the last minute that ended at the upstream, as the first gateway counted them when it found the failures. */
      readonly requests: number;
      readonly failed: number;
    }
  | {
      readonly kind: 'upstream_well';
      readonly upstream: string;
      /** `quiet`: no request has arrived for a minute. `removed`: a reload has removed the upstream. */
      readonly ended: 'recovered' | 'quiet' | 'removed';
      /** The time at which the upstream began to fail, epoch ms. */
      readonly sinceMs: number;
      /** How long requests failed; absent if the gateway was restarted in between, or if the upstream was removed. */
      readonly failingMs?: number | undefined;
      /** The largest share of failed requests in a minute, from 0 to 1. */
      readonly worstShare?: number | undefined;
    };

const ofUpstream = {
  ...aboutNoKey,
  subject: ({ upstream }: UpstreamFailureEvent) => `upstream ${upstream}`,
  // A gateway reads the outages that other gateways have reported, so the reports of one event are only seconds apart. Two outages are
  // further apart, because the failures of the first one count for a minute.
  identity: ({ upstream }: UpstreamFailureEvent) =>
    ({ kind: 'near', what: [upstream], within: 'eventsMergedWithinMs' }) as const,
};

const endings = {
  recovered: 'is well again',
  quiet: 'has had no request for a minute, so nothing shows whether it is well',
  removed: 'was removed from the configuration',
};

export const upstreamKinds: ListedKinds<UpstreamFailureEvent> = {
  upstream_failing: {
    ...ofUpstream,
    // The event is reported as soon as the bounds are reached, so the share is always small. It would look harmless in the sentence.
    text: ({ upstream, failed }) =>
      `Upstream ${upstream} is failing: ${figure(failed)} of its requests have ended with 5xx or been cut off in the last minute.`,
    list: {
      group: 'incident',
      many: 'times an upstream began to fail',
      entry: ({ upstream }) => ({ upstream }),
    },
    webhook: webhook({
      typeOf: () => 'upstream.failing',
      when: {
        'upstream.failing':
          'Many requests of a minute ended with 5xx or were cut off because of the upstream. The setting `failing` has the bounds.',
      },
      data: (z) => ({
        upstream: z.string(),
        requests: z.int(),
        failed: z
          .int()
          .describe(
            'As the first gateway that found the failures counted them, so the figures are near the bounds.',
          ),
      }),
      members: ({ upstream, requests, failed }) => ({ upstream, requests, failed }),
      examples: () => [{ kind: 'upstream_failing', upstream: 'default', requests: 240, failed: 18 }],
    }),
  },
  upstream_well: {
    ...ofUpstream,
    text({ upstream, ended, sinceMs, failingMs, worstShare = 0 }, nowMs) {
      const began = timeText(sinceMs, nowMs);
      const how =
        failingMs === undefined
          ? `It had failed since ${began}`
          : `Its requests failed from about ${began} to about ${timeText(sinceMs + failingMs, nowMs)}, for ${durationText(failingMs)}`;
      const worst = worstShare === 0 ? '' : `, at worst ${percent(worstShare)} of its requests in a minute`;
      return `Upstream ${upstream} ${endings[ended]}. ${how}${worst}.`;
    },
    list: {
      group: 'incident',
      many: 'times an upstream was well again',
      entry: ({ upstream, sinceMs, failingMs }) => ({
        upstream,
        beganAt: isoOf(sinceMs),
        endedAt: isoOf(failingMs === undefined ? undefined : sinceMs + failingMs),
      }),
    },
    webhook: webhook({
      typeOf: () => 'upstream.well',
      when: {
        'upstream.well': 'An upstream no longer fails.',
      },
      data: (z) => ({
        upstream: z.string(),
        ended: z
          .enum(['recovered', 'quiet', 'removed'])
          .describe(
            '`quiet`: no request has arrived for a minute. `removed`: the configuration no longer has the upstream.',
          ),
        sinceAt: z.iso.datetime(),
        failingSeconds: z
          .int()
          .optional()
          .describe('Absent if the gateway was restarted meanwhile, and for a removed upstream.'),
        worstShare: z
          .number()
          .optional()
          .describe(
            'The largest share of failures in a minute, from 0 to 1; 0 if the gateway was restarted and has not measured one since. Absent for a removed upstream.',
          ),
      }),
      members: ({ upstream, ended, sinceMs, failingMs, worstShare }) => ({
        upstream,
        ended,
        sinceAt: isoOf(sinceMs),
        failingSeconds: failingMs && Math.round(failingMs / 1_000),
        worstShare: worstShare && Math.round(worstShare * 1_000) / 1_000,
      }),
      examples: (nowMs) => [
        {
          kind: 'upstream_well',
          upstream: 'default',
          ended: 'recovered',
          sinceMs: nowMs - 300_000,
          failingMs: 240_000,
          worstShare: 0.67,
        },
      ],
    }),
  },
};
