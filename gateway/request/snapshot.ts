import type { KeyDirectory } from '../keys/directory/key-directory.ts';
import { type AddressRanges, compileRanges } from '../shared/addresses/address-ranges.ts';
import { countedBy, type Key, type QuotaRules, type Settings } from '../shared/model.ts';
import {
  type AuthenticateKey,
  type Blocked,
  createAuthenticateKey,
  type ValidSecret,
} from './authenticate/authenticate-key.ts';
import { keyMembers, operationMember } from './log-members.ts';
import { hstsFieldsOf } from './respond/common-fields.ts';
import type { CorsOrigins } from './respond/cors-fields.ts';
import { type KeyExpiry, keyExpiryOf } from './respond/key-expiry.ts';
import { createPolicyText, type PolicyText } from './respond/rate-limit-fields.ts';
import { createOperationTable, type OperationTable } from './route/operation-table.ts';

/** The current configuration: the settings, and lookup tables that are built from the settings. A reload replaces the snapshot. */
export interface Snapshot {
  readonly settings: Settings;
  /** The rules for all keys. The object is small, so the limiter may keep it longer than the snapshot. */
  readonly rules: QuotaRules;
  readonly operations: OperationTable;
  /** Whether limits count requests or units (`countedBy`). */
  readonly counted: 'request' | 'unit';
  /** Whether a client sees the reason of a ban by hand. */
  readonly showsBanReason: boolean;
  /** The addresses of trusted proxies; undefined when none is configured. */
  readonly trustedProxies: AddressRanges | undefined;
  readonly authenticate: AuthenticateKey<KnownKey>;
  readonly corsOrigins: CorsOrigins;
  readonly hstsFields: readonly string[] | undefined;
}

/** A key with values that are computed once per secret, when a client first presents the secret. */
export interface KnownKey extends Key {
  /** The expiry of the presented secret; undefined when the secret never expires. */
  readonly expiry: KeyExpiry | undefined;
  /** The first digits of the presented secret's digest, for the log. */
  readonly digestStart: string;
  readonly policyText: PolicyText;
  /** The key's members of the access line, as JSON text. */
  readonly logged: string;
}

export function createSnapshot(settings: Settings, { directory, blocked }: SnapshotSources): Snapshot {
  return Object.freeze({
    settings,
    rules: { bans: settings.bans, thresholds: settings.thresholds },
    operations: createOperationTable(settings.operations, settings.basePath, operationMember),
    counted: countedBy(settings.operations),
    showsBanReason: settings.showsBanReason,
    trustedProxies: settings.trustedProxies.length > 0 ? compileRanges(settings.trustedProxies) : undefined,
    authenticate: createAuthenticateKey(settings, knownKeyOf, directory?.keysRead(settings), blocked),
    corsOrigins: settings.cors && new Set(settings.cors.origins),
    hstsFields: hstsFieldsOf(settings.hsts),
  });
}

interface SnapshotSources {
  /** Undefined when all keys are in the configuration. */
  readonly directory: Pick<KeyDirectory, 'keysRead'> | undefined;
  /** The leaked secrets of the configuration. */
  readonly blocked: Blocked;
}

export function knownKeyOf(key: Key, { expiresMs, digestStart }: ValidSecret): KnownKey {
  return {
    ...key,
    expiry: keyExpiryOf(expiresMs),
    digestStart,
    policyText: createPolicyText(key.concurrent),
    logged: keyMembers(key, digestStart),
  };
}
