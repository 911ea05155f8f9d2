import * as z from 'zod';
import { capabilityWires } from '../../capabilities/lists/schemas.ts';
import { defineWire, type Wire } from '../../shared/http/wire.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { listChangesWire, reportChangeWire } from './changes.ts';
import { listEventsWire } from './events.ts';
import { getStateWire } from './fleet/fleet.ts';
import { flushCountsWire } from './fleet/flush.ts';
import { listUpstreamsWire } from './fleet/upstreams.ts';
import { banKeyWire, grantKeyWire, unbanKeyWire, ungrantKeyWire } from './keys/bans-and-grants.ts';
import { listDeadSecretsWire } from './keys/dead-secrets.ts';
import { changeKeyWire, deleteKeyWire, issueKeyWire } from './keys/definitions.ts';
import {
  exportDirectoryWire,
  findInDirectoryWire,
  findSecretWire,
  importDirectoryWire,
} from './keys/directory.ts';
import { getKeyWire } from './keys/key.ts';
import { listKeysWire } from './keys/keys.ts';
import { listLeaksWire } from './keys/leaks.ts';
import { listOldSecretsWire } from './keys/old-secrets.ts';
import { issueSecretWire, removeSecretWire } from './keys/secrets.ts';
import { getKeyForecastWire, getKeyLimitsWire, getKeyUsageWire, getMonthUsageWire } from './keys/usage.ts';
import { getKeyMinuteWire } from './keys/why.ts';
import { getTrafficWire, listCallersWire, listDeprecatedWire, listOperationsWire } from './operations.ts';
import { getPlanDistributionWire, getPlanTrialWire } from './plans/figures.ts';
import { listPlansWire } from './plans/plans.ts';
import { getSettingsWire } from './settings.ts';

export const getApiDocumentWire = defineWire({
  method: 'GET',
  path: '/openapi.json',
  operationId: 'getApiDocument',
  tag: 'Configuration',
  summary: 'The OpenAPI document',
  description: 'The document of this API, as JSON.',
  answers: { 200: { description: 'The document.', schema: z.looseObject({ openapi: z.string() }) } },
});

/** What clients know about each route of the admin API, in the order of the OpenAPI document. */
export function wires(bounds: Bounds) {
  return [
    getStateWire,
    getSettingsWire,
    listKeysWire,
    issueKeyWire,
    getKeyWire,
    changeKeyWire,
    deleteKeyWire,
    issueSecretWire,
    removeSecretWire,
    banKeyWire,
    unbanKeyWire,
    grantKeyWire,
    ungrantKeyWire,
    getKeyUsageWire,
    getKeyForecastWire,
    getKeyLimitsWire,
    getKeyMinuteWire,
    getMonthUsageWire,
    findSecretWire,
    listLeaksWire,
    listDeadSecretsWire,
    listOldSecretsWire,
    exportDirectoryWire(bounds),
    importDirectoryWire(bounds),
    findInDirectoryWire(bounds),
    getTrafficWire,
    listOperationsWire,
    listCallersWire,
    listDeprecatedWire,
    listPlansWire,
    getPlanDistributionWire,
    getPlanTrialWire,
    ...wiresOfCapabilities(bounds),
    flushCountsWire,
    listUpstreamsWire,
    listChangesWire(bounds),
    reportChangeWire(bounds),
    listEventsWire(bounds),
    getApiDocumentWire,
  ] satisfies readonly Wire[];
}

/** The list has wires, and functions that make wires with bounds. */
function wiresOfCapabilities(bounds: Bounds) {
  const all: readonly (Wire | ((bounds: Bounds) => Wire))[] = capabilityWires;
  return all.map((wire) => (typeof wire === 'function' ? wire(bounds) : wire)) as Made<
    (typeof capabilityWires)[number]
  >[];
}

type Made<Entry> = Entry extends (bounds: Bounds) => infer Of ? Of : Entry;
