import type { DecisionSource, PlanWindow } from '../../shared/model.ts';
import { isoOf } from '../../shared/schema/dates-and-durations.ts';
import { figure } from '../../shared/words/figures.js';
import { policyName } from '../../shared/words/limit-names.js';
import type { KeyChange } from '../changes.ts';
import { timeText, whoOf } from '../wording.ts';
import { aboutKey, exampleDigestStart, exampleKey, type Kinds, webhook, type Zod } from './kind.ts';

export interface QuotaThreshold {
  readonly kind: 'quota_threshold';
  readonly keyId: string;
  readonly plan: string | undefined;
  readonly window: Extract<PlanWindow, 'hour' | 'day' | 'month'>;
  /** Absent if the limit counts all operations. */
  readonly group?: string | undefined;
  /** The number of the window since the epoch. */
  readonly index: number;
  readonly percent: number;
  readonly used: number;
  /** Includes a grant. */
  readonly limit: number;
  /** The last reset of the key's counts, epoch ms; 0: never. After a reset, each percentage is reported again. */
  readonly resetMs: number;
  /** The end of the window, epoch ms. */
  readonly endsAtMs: number;
  readonly source: DecisionSource;
}

export interface SecretLeaked {
  readonly kind: 'secret_leaked';
  readonly keyId: string;
  readonly plan: string | undefined;
  /** The first 8 digits. */
  readonly digestStart: string;
  /** `github`, or the name of the token of the admin API. */
  readonly source: string;
  readonly url: string | undefined;
  /** The name of the secret's form at the reporter. */
  readonly type: string | undefined;
  /** Whether the gateway has ended the secret because of the report. */
  readonly ended: boolean;
  /** The first 8 digits of the digests of the secrets that ended too, because the holder of the key issued them from this secret. */
  readonly descendants: readonly string[];
  /** The report, ISO 8601. */
  readonly reportedAt: string;
}

export interface KeyExpiring {
  readonly kind: 'key_expiring';
  readonly keyId: string;
  readonly plan: string | undefined;
  /** The first 8 digits of the digest of the expiring secret. */
  readonly digestStart: string;
  /** Whether the key has another secret that is valid for longer. */
  readonly hasOther: boolean;
  readonly expiresMs: number;
  /** The mark that was reached: this number of days before the expiry. */
  readonly days: number;
}

export type KeyNotice = QuotaThreshold | SecretLeaked | KeyExpiring;

const ofKey = (z: Zod) => ({ key: z.string(), plan: z.string().optional() });

export const keyNoticeKinds: Kinds<KeyNotice> = {
  quota_threshold: {
    ...aboutKey,
    text(threshold) {
      const { percent, used, limit, window, group } = threshold;
      const ofGroup = group === undefined ? '' : ` of the group ${group}`;
      return `${whoOf(threshold)} has used ${percent} % of its limit${ofGroup} for the ${window}: ${figure(used)} of ${figure(limit)}.`;
    },
    identity({ keyId, window, group, index, percent, resetMs, endsAtMs }) {
      const what = [keyId, policyName(window, group), index, percent, resetMs];
      return { kind: 'once', what, untilMs: endsAtMs };
    },
    webhook: webhook({
      typeOf: () => 'quota.threshold',
      when: {
        'quota.threshold':
          'A key has used a percentage of its limit per hour, day or month. The event is sent once for each key, window, group and percentage, and again after a reset of the counts.',
      },
      data: (z) => ({
        ...ofKey(z),
        window: z.enum(['hour', 'day', 'month']),
        group: z.string().optional().describe('The group of operations, if the limit belongs to one.'),
        percent: z.int().describe('One of the percentages in the setting `at` of the receiver.'),
        used: z.int(),
        limit: z.int().describe('Includes a grant.'),
        windowEndsAt: z.iso.datetime(),
        source: z
          .enum(['shared', 'local'])
          .describe(
            '`shared`: the counts in Redis. `local`: the counts of one process, while Redis is away.',
          ),
      }),
      members({ keyId: key, plan, window, group, percent, used, limit, endsAtMs, source }) {
        const windowEndsAt = isoOf(endsAtMs);
        return { key, plan, window, group, percent, used, limit, windowEndsAt, source: sourceOf(source) };
      },
      examples(nowMs) {
        const now = new Date(nowMs);
        const [year, month] = [now.getUTCFullYear(), now.getUTCMonth()];
        return [
          {
            kind: 'quota_threshold',
            ...exampleKey,
            window: 'month',
            index: (year - 1970) * 12 + month,
            percent: 80,
            used: 8_000,
            limit: 10_000,
            resetMs: 0,
            endsAtMs: Date.UTC(year, month + 1),
            source: 'shared',
          },
        ];
      },
    }),
  },
  secret_leaked: {
    ...aboutKey,
    text({ digestStart, source, url, ended, descendants, ...key }) {
      const where = url === undefined ? '' : ` at ${url}`;
      const effect = ended ? 'The secret was ended.' : 'The secret was not ended by this report.';
      const issued = descendants.map((one) => `${one}…`).join(', ');
      const others =
        issued === '' ? '' : ` The secrets that its holder issued from it were ended too: ${issued}.`;
      return `The secret ${digestStart}… of ${whoOf(key)} was found${where}, reported by ${source}. ${effect}${others}`;
    },
    identity: ({ keyId, digestStart, reportedAt }) => ({
      kind: 'once',
      what: [keyId, digestStart, reportedAt],
    }),
    webhook: webhook({
      typeOf: () => 'secret.leaked',
      when: { 'secret.leaked': 'A secret was reported as leaked.' },
      data: (z) => ({
        ...ofKey(z),
        digestStart: z.string().describe('The first 8 digits of the digest of the secret.'),
        source: z.string().describe('`github`, or the name of the token of the admin API.'),
        url: z.string().optional().describe('Where the secret was found.'),
        secretType: z.string().optional().describe('The reporter’s name for the form of the secret.'),
        ended: z.boolean().describe('Whether the secret was ended because it leaked.'),
        descendants: z
          .array(z.string())
          .describe(
            'The digests, by their first 8 digits, of the secrets that ended too, because the holder of the key issued them with this one.',
          ),
      }),
      list: 'descendants',
      members({ keyId: key, plan, digestStart, source, url, type, ended, descendants }) {
        return {
          key,
          plan,
          digestStart,
          source,
          url,
          secretType: type,
          ended,
          descendants: [...descendants],
        };
      },
      examples: (nowMs) => [
        {
          kind: 'secret_leaked',
          ...exampleKey,
          digestStart: exampleDigestStart,
          source: 'github',
          url: 'https://github.com/example/repository/blob/main/.env',
          type: 'tollgate_api_key',
          ended: true,
          descendants: ['60303ae2'],
          reportedAt: isoOf(nowMs),
        },
      ],
    }),
  },
  key_expiring: {
    ...aboutKey,
    text({ digestStart, hasOther, expiresMs, ...key }, nowMs) {
      const what = hasOther
        ? `The secret ${digestStart}… of ${whoOf(key)}`
        : `The last secret of ${whoOf(key)}`;
      return `${what} expires at ${timeText(expiresMs, nowMs)}.`;
    },
    identity: ({ keyId, digestStart, expiresMs, days }) => ({
      kind: 'once',
      what: [keyId, digestStart, expiresMs, days],
    }),
    webhook: webhook({
      typeOf: () => 'key.expiring',
      when: {
        'key.expiring':
          'A secret of a key that is not disabled has reached 14 days, or one day, before its expiry.',
      },
      data: (z) => ({
        ...ofKey(z),
        digestStart: z.string().describe('The first 8 digits of the digest of the secret.'),
        hasOther: z.boolean().describe('Whether the key has a secret with a later expiry, or without one.'),
        expiresAt: z.iso.datetime(),
        days: z.int().describe('14 or 1.'),
      }),
      members({ keyId: key, plan, digestStart, hasOther, expiresMs, days }) {
        return { key, plan, digestStart, hasOther, expiresAt: isoOf(expiresMs), days };
      },
      examples: (nowMs) => [
        {
          kind: 'key_expiring',
          ...exampleKey,
          digestStart: exampleDigestStart,
          hasOther: false,
          expiresMs: nowMs + 14 * 86_400_000,
          days: 14,
        },
      ],
    }),
  },
};

/** Without Redis there are no receivers, so no event has the source `memory`. */
function sourceOf(source: DecisionSource): 'shared' | 'local' {
  return source === 'local' ? 'local' : 'shared';
}

/** Undefined for any other change. */
export function leakNotice(
  { action, by, key: keyId, before, after, error }: KeyChange,
  plan: string | undefined,
): SecretLeaked | undefined {
  if (action !== 'leak' || keyId === undefined || error !== undefined) return undefined;
  const textOf = (member: unknown) => (typeof member === 'string' ? member : undefined);
  return {
    kind: 'secret_leaked',
    keyId,
    plan,
    digestStart: textOf(before?.secret) ?? '',
    source: by,
    url: textOf(after?.url),
    type: textOf(after?.type),
    ended: after?.ended === true,
    descendants: Array.isArray(after?.descendants) ? after.descendants : [],
    reportedAt: textOf(after?.reportedAt) ?? '',
  };
}
