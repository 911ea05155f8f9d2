import * as z from 'zod';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { grantKeyWire, unbanKeyWire, ungrantKeyWire } from '../keys/change/ban-and-grant.ts';
import { changeKeyWire, deleteKeyWire } from '../keys/change/edit-routes.ts';
import { exportDirectoryWire, findInDirectoryWire } from '../keys/change/export-route.ts';
import { importDirectoryWire } from '../keys/change/import-route.ts';
import { issueKeyWire } from '../keys/change/issue-key.ts';
import { reportChangeWire } from '../keys/change/reported-change.ts';
import { issueSecretWire, removeSecretWire } from '../keys/change/secret-routes.ts';
import { findSecretWire } from '../keys/change/whoami.ts';
import { getKeyUsageWire, getKeyWire, getMonthUsageWire, listKeysWire } from '../keys/key-routes.ts';
import { listLeaksWire, reportLeaksWire } from '../keys/leaks/leak-routes.ts';
import { getKeyLimitsWire } from '../keys/limits-route.ts';
import { makegoodWire } from '../keys/makegood/makegood-route.ts';
import { listCallersWire } from '../operations/callers-view.ts';
import { flushCountsWire } from '../operations/flush-route.ts';
import { listOperationsWire } from '../operations/operations-view.ts';
import { getTrafficWire } from '../operations/traffic-view.ts';
import { getPlanDistributionWire } from '../plans/plan-distribution.ts';
import { listPlansWire } from '../plans/plans-view.ts';
import { retryPlanWire } from '../plans/retry-route.ts';
import { simulateWire } from '../plans/simulate-route.ts';
import { getPlanTrialWire } from '../plans/trial-route.ts';
import { listDeliveriesWire } from './deliveries/deliveries-route.ts';
import { getDeliveryWire, sendAgainWire } from './deliveries/delivery-routes.ts';
import {
  getSettingsWire,
  getStateWire,
  listChangesWire,
  listEventsWire,
  listUpstreamsWire,
} from './fleet/fleet-wires.ts';
import { defineWire, type Wire } from './wire.ts';

export const getApiDocumentWire = defineWire({
  method: 'GET',
  path: '/openapi.json',
  operationId: 'getApiDocument',
  tag: 'Configuration',
  summary: 'This document',
  description: 'This document, as JSON.',
  answers: { 200: { description: 'The document.', schema: z.looseObject({ openapi: z.string() }) } },
});

/** What clients know about each route of the admin API, in the order of the OpenAPI document. */
export function wires(bounds: Bounds): readonly Wire[] {
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
    unbanKeyWire,
    grantKeyWire,
    ungrantKeyWire,
    getKeyUsageWire,
    getKeyLimitsWire,
    getMonthUsageWire,
    findSecretWire,
    listLeaksWire,
    reportLeaksWire(bounds),
    exportDirectoryWire(bounds),
    importDirectoryWire(bounds),
    findInDirectoryWire(bounds),
    getTrafficWire,
    listOperationsWire,
    listCallersWire,
    listPlansWire,
    getPlanDistributionWire,
    getPlanTrialWire,
    retryPlanWire,
    makegoodWire,
    simulateWire,
    flushCountsWire,
    listUpstreamsWire,
    listChangesWire(bounds),
    reportChangeWire(bounds),
    listEventsWire(bounds),
    listDeliveriesWire(bounds),
    getDeliveryWire,
    sendAgainWire,
    getApiDocumentWire,
  ];
}
