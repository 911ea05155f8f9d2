import type { BlockList } from 'node:net';
import { compileTrustedProxies } from './identify/client-origin.ts';
import { createIdentifyKey, type IdentifyKey } from './identify/identify-key.ts';
import { createOperationTable, type OperationTable } from './match/operation-table.ts';
import type { Settings } from './model.ts';
import type { CorsOrigins } from './respond/cors-fields.ts';

/** The configuration in force: the settings, and tables made of them for the request path. A reload replaces it as a whole. */
export interface Snapshot {
  readonly settings: Settings;
  readonly operations: OperationTable;
  readonly trustedProxies: BlockList | undefined;
  readonly identifyKey: IdentifyKey;
  readonly corsOrigins: CorsOrigins;
}

export function createSnapshot(settings: Settings): Snapshot {
  return Object.freeze({
    settings,
    operations: createOperationTable(settings.operations, settings.basePath),
    trustedProxies: compileTrustedProxies(settings.trustedProxies),
    identifyKey: createIdentifyKey(settings),
    corsOrigins: settings.cors && new Set(settings.cors.origins),
  });
}
