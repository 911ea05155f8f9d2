import { createHash } from 'node:crypto';
import type { KeyEntry } from '../support/gateway-process.ts';

/** These secrets are fixed, so another run can resend the bytes of a printed finding. */
export const secrets = {
  valid: 'fuzz-valid-secret',
  other: 'fuzz-other-secret',
  /** The secret of a key with a limit of three requests a minute. */
  tight: 'fuzz-tight-secret',
  disabled: 'fuzz-disabled-secret',
  expired: 'fuzz-expired-secret',
  unknown: 'fuzz-unknown-secret',
} as const;

const roomy = { perMinute: 1_000_000_000, perDay: 1_000_000_000 };

export const keyEntries: readonly KeyEntry[] = [
  entry({ id: 'key-valid', secret: secrets.valid }),
  entry({ id: 'key-other', secret: secrets.other }),
  entry({ id: 'key-tight', secret: secrets.tight, limits: { perMinute: 3, perDay: 1_000 } }),
  entry({ id: 'key-disabled', secret: secrets.disabled, disabled: true }),
  entry({ id: 'key-expired', secret: secrets.expired, expires: '2020-01-01' }),
];

/** The key id of each valid secret. Disabled and expired keys are not included. */
export const keyIdBySecret: ReadonlyMap<string, string> = new Map([
  [secrets.valid, 'key-valid'],
  [secrets.other, 'key-other'],
  [secrets.tight, 'key-tight'],
]);

function entry(key: {
  readonly id: string;
  readonly secret: string;
  readonly limits?: KeyEntry['limits'];
  readonly disabled?: boolean;
  readonly expires?: string;
}): KeyEntry {
  const { id, secret, limits = roomy, disabled, expires } = key;
  const sha256 = createHash('sha256').update(secret).digest('hex');
  return {
    id,
    plan: 'enterprise',
    limits,
    ...(disabled && { disabled }),
    secrets: [{ sha256, ...(expires && { expires }) }],
  };
}
