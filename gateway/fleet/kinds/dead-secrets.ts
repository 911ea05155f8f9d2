import { timeText, whoOf } from '../wording.ts';
import { aboutKey, type ListedKinds } from './kind.ts';

/** Clients have used a secret for an hour that is not valid. */
export interface DeadSecretUsed {
  readonly kind: 'dead_secret_used';
  readonly keyId: string;
  readonly plan: string | undefined;
  /** The first 8 digits. */
  readonly digestStart: string;
  /** The first use, epoch ms. */
  readonly sinceMs: number;
  /** The day in UTC, numbered since 1970. */
  readonly day: number;
}

export const deadSecretKinds: ListedKinds<DeadSecretUsed> = {
  dead_secret_used: {
    ...aboutKey,
    text: (used, nowMs) =>
      `Clients have used a secret of ${whoOf(used)} that is not valid (${used.digestStart}) since ${timeText(used.sinceMs, nowMs)}.`,
    identity: ({ keyId, digestStart, day }) => ({ kind: 'once', what: [keyId, digestStart, day] }),
    list: {
      group: 'incident',
      many: 'dead secrets were used for an hour',
      entry: ({ keyId, plan }) => ({ key: keyId, plan }),
    },
  },
};
