import { isoOf } from '../../shared/schema/dates-and-durations.ts';
import type { WebhookEventType } from '../../shared/words/event-names.js';
import { type KeyChange, keyActions, leakIdentity } from '../changes.ts';
import { keyChangeText } from '../key-change-text.ts';
import { exampleDigestStart, exampleKey, type ListedKinds, webhook } from './kind.ts';

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
          'The admin API, or a command with a token, has created a key. Events of an import have `"change":"import"` and a number of created keys (`count`) in place of `key`.',
        'key.revoked': 'A key was revoked, or deleted (`"change":"delete"`).',
        'key.rotated':
          'An operator or the holder of a key (`"by":"holder"`) rotated its secret. A further secret (`secret_issued`) and a removed secret (`secret_removed`) also cause this event.',
      },
      data: (z) => ({
        key: z.string().optional().describe('Absent for an import.'),
        change: z.enum([...keyActions, 'secret_issued', 'secret_removed']),
        by: z.string().describe('The name of the token, or `holder`.'),
        plan: z.string().optional().describe('The plan of a created key.'),
        count: z
          .int()
          .optional()
          .describe(
            'The number of created keys, for an import. An import sends an event for each request, of up to 500 keys.',
          ),
        digestStart: z
          .string()
          .optional()
          .describe('The first 8 digits of the digest of the new or removed secret.'),
        expiresAt: z.string().optional().describe('The expiry of the new secret.'),
        oldEndsAt: z
          .string()
          .optional()
          .describe(
            'When the last of the older secrets ends; absent without such a time. If the holder rotated, when the presented secret ends.',
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
          change: action === 'secret' ? secretChange(after) : action,
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
    case 'rotate':
    case 'secret':
      return 'key.rotated';
    // A ban, a lifted ban and a leak have their own notices.
    case 'ban':
    case 'unban':
    case 'leak':
    case 'restore':
    case 'update':
    case 'grant':
    case 'ungrant':
      return undefined;
    default:
      // Receivers do not get the changes of capabilities.
      return undefined;
  }
}

function secretChange(after: KeyChange['after']): 'secret_issued' | 'secret_removed' {
  return after === undefined ? 'secret_removed' : 'secret_issued';
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
