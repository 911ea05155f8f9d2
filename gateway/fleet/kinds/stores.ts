import { durationText } from '../wording.ts';
import { aboutNoKey, type ListedKinds, webhook } from './kind.ts';

/** Redis, or a server of a Redis Cluster, is away or back. */
export type StoreEvent =
  | {
      readonly kind: 'store_away';
      /** The affected server of a Redis Cluster. */
      readonly server?: string;
      readonly reason: string;
      readonly onFailure: 'local' | 'refuse';
    }
  | {
      readonly kind: 'store_back';
      readonly server?: string;
      readonly awayMs: number;
    };

/** Redis has other data than before, or none. */
export interface DataLost {
  readonly kind: 'store_emptied';
  /** The mark of the new data. */
  readonly mark: string;
}

const ofStore = {
  ...aboutNoKey,
  subject: ({ server = '' }: StoreEvent) => `store ${server}`,
  identity: ({ server = '' }: StoreEvent) =>
    ({ kind: 'near', what: [server], within: 'eventsMergedWithinMs' }) as const,
};

export const dataLostText =
  'Redis has lost its data: counts, bans, grants, links, the usage record, the record of changes and the keys of the directory began anew. A backup restores them.';

const entry = ({ server }: StoreEvent) => ({ server });

export const storeKinds: ListedKinds<StoreEvent | DataLost> = {
  store_emptied: {
    ...aboutNoKey,
    subject: () => 'store',
    text: () => dataLostText,
    // Each gateway finds the same new mark.
    identity: ({ mark }) => ({ kind: 'once', what: [mark] }),
    list: { group: 'incident', many: 'losses of the data in Redis', entry: () => ({}) },
  },
  store_away: {
    ...ofStore,
    text(away) {
      const whose = away.server === undefined ? '' : ' of its keys';
      const effect =
        away.onFailure === 'local'
          ? `each process counts limits${whose} on its own`
          : `requests${whose} are answered 503`;
      return `${nameOf(away)} is away (${away.reason}): ${effect}.`;
    },
    list: { group: 'incident', many: 'times Redis went away', entry },
    webhook: webhook({
      typeOf: () => 'store.away',
      when: {
        'store.away':
          'Redis is away, or one server of a Cluster. Redis keeps the events, so this event is sent when the server that keeps them is reachable.',
      },
      data: (z) => ({
        server: z.string().optional().describe('The server of a Cluster.'),
        reason: z.string(),
        onFailure: z.enum(['local', 'refuse']).describe('The setting `redis.onFailure`.'),
      }),
      members: ({ server, reason, onFailure }) => ({ server, reason, onFailure }),
      examples: () => [
        { kind: 'store_away', reason: 'connect ECONNREFUSED 127.0.0.1:6379', onFailure: 'local' },
      ],
    }),
  },
  store_back: {
    ...ofStore,
    text(back, _nowMs, begun) {
      // Each process has made a different number of decisions without Redis, so the merged event omits it.
      const reason = begun?.kind === 'store_away' ? ` (${begun.reason})` : '';
      return `${nameOf(back)} is back. It was away for ${durationText(back.awayMs)}${reason}.`;
    },
    list: { group: 'incident', many: 'times Redis came back', entry },
    webhook: webhook({
      typeOf: () => 'store.back',
      when: { 'store.back': 'Redis, or the server of a Cluster, is back.' },
      data: (z) => ({ server: z.string().optional(), awaySeconds: z.int() }),
      members: ({ server, awayMs }) => ({ server, awaySeconds: Math.round(awayMs / 1_000) }),
      examples: () => [{ kind: 'store_back', awayMs: 42_000 }],
    }),
  },
};

function nameOf({ server }: StoreEvent): string {
  return server === undefined ? 'Redis' : `Redis server ${server}`;
}
