import { durationText } from '../wording.ts';
import { aboutNoKey, type ListedKinds, webhook } from './kind.ts';

export type TargetEvent =
  | {
      readonly kind: 'target_unhealthy';
      readonly upstream: string;
      readonly target: string;
      /** A `silent` target gets requests only when no other target is healthy. */
      readonly health: 'silent' | 'down';
      readonly reason: string | undefined;
    }
  | {
      readonly kind: 'target_healthy';
      readonly upstream: string;
      readonly target: string;
      readonly unhealthyMs: number;
    };

const ofTarget = {
  ...aboutNoKey,
  subject: ({ upstream, target }: TargetEvent) => `target ${upstream} ${target}`,
  identity: ({ upstream, target }: TargetEvent) =>
    ({ kind: 'near', what: [upstream, target], within: 'eventsMergedWithinMs' }) as const,
};

const entry = ({ upstream, target }: TargetEvent) => ({ upstream, target });

const exampleTarget = { upstream: 'default', target: '127.0.0.1:3000' };

export const targetKinds: ListedKinds<TargetEvent> = {
  target_unhealthy: {
    ...ofTarget,
    text({ upstream, target, health, reason }) {
      const effect =
        health === 'down'
          ? 'is down and gets no requests'
          : 'is silent and gets no requests while another target is healthy';
      return `Target ${target} of upstream ${upstream} ${effect}${reason === undefined ? '' : `: ${reason}`}.`;
    },
    list: { group: 'incident', many: 'targets became unhealthy', entry },
    webhook: webhook({
      typeOf: () => 'target.down',
      when: { 'target.down': 'A target is unhealthy.' },
      data: (z) => ({
        upstream: z.string(),
        target: z.string(),
        health: z
          .enum(['silent', 'down'])
          .describe('`silent`: the target gets requests only while all other targets are unhealthy.'),
        reason: z.string().optional(),
      }),
      members: ({ upstream, target, health, reason }) => ({ upstream, target, health, reason }),
      examples: () => [
        { kind: 'target_unhealthy', ...exampleTarget, health: 'down', reason: 'connection refused' },
      ],
    }),
  },
  target_healthy: {
    ...ofTarget,
    text({ upstream, target, unhealthyMs }, _nowMs, begun) {
      const reason =
        begun?.kind === 'target_unhealthy' && begun.reason !== undefined
          ? `. The failure was: ${withoutAdvice(begun.reason)}`
          : '';
      return `Target ${target} of upstream ${upstream} is healthy again after ${durationText(unhealthyMs)}${reason}.`;
    },
    list: { group: 'incident', many: 'targets became healthy again', entry },
    webhook: webhook({
      typeOf: () => 'target.up',
      when: { 'target.up': 'A target is healthy again.' },
      data: (z) => ({ upstream: z.string(), target: z.string(), unhealthySeconds: z.int() }),
      members: ({ upstream, target, unhealthyMs }) => ({
        upstream,
        target,
        unhealthySeconds: Math.round(unhealthyMs / 1_000),
      }),
      examples: () => [{ kind: 'target_healthy', ...exampleTarget, unhealthyMs: 42_000 }],
    }),
  },
};

/** The advice about an outage, after the semicolon, is of no use once the outage has ended. */
function withoutAdvice(reason: string): string {
  return reason.split('; ', 1)[0] ?? reason;
}
