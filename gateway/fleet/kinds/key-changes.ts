import { isoOf } from '../../shared/schema/dates-and-durations.ts';
import type { WebhookEventType } from '../../shared/words/event-names.js';
import { type KeyAction, type KeyChange, leakIdentity } from '../changes.ts';
import { keyChangeText } from '../key-change-text.ts';
import { exampleDigestStart, exampleKey, type ListedKinds, webhook } from './kind.ts';

/** What receivers get. */
const sentChanges = [
  'create',
  'import',
  'revoke',
  'update',
  'delete',
  'rotate',
  'secret_issued',
  'secret_removed',
] as const;

type SentChange = (typeof sentChanges)[number];

export type KeyChanged = { readonly kind: 'key_changed' } & KeyChange;

export const keyChangeKinds: ListedKinds<KeyChanged> = {
  key_changed: {
    filters: ['keys', 'plans'],
    about({ key, plan, before, after }) {
      return { key, plan: textOf(plan ?? after?.plan ?? before?.plan) };
    },
    subject: ({ key = '' }) => `key ${key}`,
    text: keyChangeText,
    identity(change) {
      const leak = leakIdentity(change);
      return leak === undefined ? { kind: 'own' } : { kind: 'once', what: leak };
    },
    list: { group: 'change', many: 'changes of keys', entry: ({ key }) => ({ key }) },
    webhook: webhook({
      typeOf: typeOfChange,
      when: {
        'key.created':
          'The admin API has created a key. Each request of an import that has created keys sends one event, with `"change":"import"` and `count` in place of `key`.',
        'key.revoked':
          'The admin API has disabled a key (`revoke`, or `update` if the request changed more), or deleted it (`delete`).',
        'key.rotated':
          'The admin API or the holder of a key has rotated its secret, or the admin API has issued a further secret (`secret_issued`) or removed one (`secret_removed`).',
      },
      data: (z) => ({
        key: z.string().optional().describe('Absent for an import.'),
        change: z.enum(sentChanges),
        by: z.string().describe('The name of the token, or `holder`.'),
        plan: z.string().optional().describe('The plan of a created key.'),
        count: z.int().optional().describe('The number of created keys, for an import.'),
        digestStart: z
          .string()
          .optional()
          .describe('The first 8 digits of the digest of the new or removed secret.'),
        expiresAt: z.string().optional().describe('The expiry of the new secret.'),
        oldEndsAt: z
          .string()
          .optional()
          .describe(
            'When the last of the older valid secrets ends; absent without such a time. If the holder rotated, when the presented secret ends.',
          ),
        unconfirmed: z
          .literal(true)
          .optional()
          .describe('Redis did not reply to the change, so the change may have had no effect.'),
      }),
      members({ action, by, key, after, before, error }) {
        const { plan, secret, oldEndsAt, othersEndAt, expiresAt, created } = after ?? {};
        return {
          key,
          change: sentChange(action, after),
          by,
          plan: action === 'create' ? textOf(plan) : undefined,
          count: action === 'import' && typeof created === 'number' ? created : undefined,
          digestStart: textOf(secret ?? before?.secret),
          expiresAt: textOf(expiresAt),
          oldEndsAt: textOf(othersEndAt ?? oldEndsAt),
          // Without a reply from the store, the change is perhaps not made.
          unconfirmed: error === undefined ? undefined : (true as const),
        };
      },
      examples(nowMs) {
        const change = { kind: 'key_changed', key: exampleKey.keyId, by: 'alice' } as const;
        const othersEndAt = isoOf(nowMs + 86_400_000);
        return [
          { ...change, action: 'create', after: { plan: exampleKey.plan } },
          { ...change, action: 'revoke', after: { disabled: true } },
          { ...change, action: 'rotate', after: { secret: exampleDigestStart, othersEndAt } },
        ];
      },
    }),
  },
};

/**
 * Each request of an import is one event, because an import may have a million keys. A key ends when it is revoked or deleted. A new or removed secret is also
 * `key.rotated`, because an operator can rotate a secret in these two steps.
 */
function typeOfChange({ action, after }: KeyChange): WebhookEventType | undefined {
  switch (action) {
    case 'create':
      return 'key.created';
    case 'import':
      return after?.created === 0 ? undefined : 'key.created';
    case 'revoke':
    case 'delete':
      return 'key.revoked';
    case 'update':
      return after?.disabled === true ? 'key.revoked' : undefined;
    case 'rotate':
    case 'secret':
      return 'key.rotated';
    // A ban, a lifted ban and a leak have their own notices.
    case 'ban':
    case 'unban':
    case 'leak':
    case 'restore':
    case 'grant':
    case 'ungrant':
      return undefined;
    default:
      // Receivers do not get the changes of capabilities.
      return undefined;
  }
}

/** Of a change that has a type. */
function sentChange(action: KeyAction, after: KeyChange['after']): SentChange {
  if (action === 'secret') return after === undefined ? 'secret_removed' : 'secret_issued';
  return action as SentChange;
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
