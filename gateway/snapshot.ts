import type { BlockList } from 'node:net';
import { compileTrustedProxies } from './identify/client-origin.ts';
import { createIdentifyKey, type IdentifyKey } from './identify/identify-key.ts';
import { createOperationTable, type OperationTable } from './match/operation-table.ts';
import type { Key, Settings } from './model.ts';
import { keyMembers, operationMember } from './observe/log-members.ts';
import type { CorsOrigins } from './respond/cors-fields.ts';
import { createPolicyText, type PolicyText } from './respond/rate-limit-fields.ts';

/** The configuration in force: the settings, and tables made of them for the request path. A reload replaces it as a whole. */
export interface Snapshot {
  readonly settings: Settings;
  readonly operations: OperationTable;
  readonly trustedProxies: BlockList | undefined;
  readonly identifyKey: IdentifyKey<KnownKey>;
  readonly corsOrigins: CorsOrigins;
}

/** A key, with the texts that depend on it and on one of its secrets: made once, when that secret is first presented. */
export interface KnownKey extends Key {
  readonly policyText: PolicyText;
  /** Its members of the access line. */
  readonly logged: string;
}

export function createSnapshot(settings: Settings): Snapshot {
  return Object.freeze({
    settings,
    operations: createOperationTable(settings.operations, settings.basePath, operationMember),
    trustedProxies: compileTrustedProxies(settings.trustedProxies),
    identifyKey: createIdentifyKey(settings, know),
    corsOrigins: settings.cors && new Set(settings.cors.origins),
  });
}

function know(key: Key, digestStart: string): KnownKey {
  return { ...key, policyText: createPolicyText(), logged: keyMembers(key, digestStart) };
}
