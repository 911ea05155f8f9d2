import type { ReadSecret, Settings } from '../../shared/model.ts';
import type { WarnOfKey } from '../../shared/structures/warn-of-key.ts';
import { compileKey } from '../compile-key.ts';
import { expiryOf } from './directory-key.ts';
import type { HeldKey } from './held-keys.ts';

/** Decides whether a directory key's secret is usable. The configuration wins when it has the same id or the same secret. */
export function readSecret(
  { key: record, generation, period, refusalPeriod }: HeldKey,
  digest: string,
  { keys, plans }: Pick<Settings, 'keys' | 'plans'>,
  warn: WarnOfKey,
): ReadSecret | 'absent' {
  const { id, plan } = record;
  if (keys.has(id)) {
    warn(id, 'the configuration and the directory both have this key; the key of the configuration is used');
    return 'absent';
  }
  if (record.secrets.some((secret) => keys.find(secret.digest) !== undefined)) {
    warn(
      id,
      'a secret of this directory key also belongs to a key of the configuration, which takes precedence',
    );
  }
  const secret = record.secrets.find((one) => one.digest === digest);
  if (secret === undefined) return 'absent';
  const expiresMs = expiryOf(secret);
  if (record.disabled)
    return { kind: 'refused', keyId: id, status: 'disabled', expiresMs, period: refusalPeriod };
  const key = compileKey(record, plans);
  if (key === undefined) {
    warn(id, `this key of the directory gets 401: the configuration gives it no limits on its plan ${plan}`);
    return { kind: 'refused', keyId: id, status: 'no_plan', expiresMs, period: refusalPeriod };
  }
  return { kind: 'usable', key: { ...key, generation }, expiresMs, period };
}
