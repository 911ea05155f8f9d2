import { readFile } from 'node:fs/promises';
import * as z from 'zod';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { grantBody, whatHolds } from '../keys/change/ban-and-grant.ts';
import { issuedKey, keyDefinition } from '../keys/change/definition.ts';
import { changeKeyBody, deletedKey } from '../keys/change/edit-routes.ts';
import { directoryIds, directoryIdsBody, directoryPage } from '../keys/change/export-route.ts';
import { importBody, imported } from '../keys/change/import-route.ts';
import { issueKeyBody } from '../keys/change/issue-key.ts';
import { keptOfIdShown } from '../keys/change/kept-of-id.ts';
import { reportedChangeBody } from '../keys/change/reported-change.ts';
import { issueSecretBody } from '../keys/change/secret-routes.ts';
import { owner, whoamiBody } from '../keys/change/whoami.ts';
import { grantShown, keyItem, keyState } from '../keys/key-item.ts';
import { judgedSecrets, leakedSecrets, leaksBody } from '../keys/leaks/leak-routes.ts';
import { limitsSteps } from '../keys/limits-over-time.ts';
import { keyPage } from '../keys/list-keys.ts';
import { makegoodBody, makegoodShown } from '../keys/makegood/makegood-view.ts';
import { monthPage } from '../keys/month-usage.ts';
import { keyDetail } from '../keys/show-key.ts';
import { keyUsage, usageRow } from '../keys/usage-rows.ts';
import { callers } from '../operations/callers-view.ts';
import { flushedCounts } from '../operations/flush-route.ts';
import { operationsPage } from '../operations/operations-view.ts';
import { traffic } from '../operations/traffic-view.ts';
import { planDistribution } from '../plans/plan-distribution.ts';
import { plansPage } from '../plans/plans-view.ts';
import { retriedPlan } from '../plans/retry-route.ts';
import { simulateBody } from '../plans/simulate-route.ts';
import { simulationShown } from '../plans/simulations.ts';
import { planTrial } from '../plans/trial-route.ts';
import { settingsShown } from '../settings/settings-view.ts';
import { changesPage, eventsPage } from './changes-view.ts';
import { deliveredEvent, deliveriesPage, deliveryShown } from './deliveries/deliveries-view.ts';
import { sendAgainBody, sentAgain } from './deliveries/delivery-routes.ts';
import { digestStart, limitName, processId, version } from './response-parts.ts';
import { fleetState } from './state-view.ts';
import { upstreamsPage } from './upstreams-view.ts';

type JsonSchema = Record<string, unknown>;

export interface ApiDocument {
  readonly paths: Record<string, Record<string, DescribedOperation>>;
  readonly components: { readonly schemas: Record<string, JsonSchema>; responses: Responses };
}

interface DescribedOperation {
  readonly operationId: string;
  requestBody?: object;
  responses: Responses;
}

type Responses = Record<string, object>;

/**
 * The OpenAPI document of the admin API. `openapi.yaml` contains the prose and the parameters, and names the response
 * of each operation. The request bodies and the responses come from the schemas that the code itself uses. Making the
 * document takes 0.1 s.
 */
export async function apiDocument(bounds: Bounds): Promise<ApiDocument> {
  // The module `yaml` is imported only here, because most processes never get a request for the document.
  const [{ parse }, text] = await Promise.all([
    import('yaml'),
    readFile(new URL('./openapi.yaml', import.meta.url), 'utf8'),
  ]);
  const document = parse(text) as ApiDocument;
  const bodies = bodySchemas(bounds);
  for (const operation of Object.values(document.paths).flatMap((methods) => Object.values(methods))) {
    const body = bodies[operation.operationId];
    if (body !== undefined) {
      const required = !body.safeParse({}).success;
      operation.requestBody = { required, content: { 'application/json': { schema: jsonSchema(body) } } };
    }
    operation.responses = {
      ...mapValues(operation.responses, wholeResponse),
      '4XX': anyError,
      default: anyError,
    };
  }
  document.components.responses = mapValues(document.components.responses, wholeResponse);
  Object.assign(document.components.schemas, componentSchemas());
  return document;
}

const anyError = { $ref: '#/components/responses/Error' };

/**
 * Expands a response of `openapi.yaml`, in which `schema` is only the name of a component. Every response has an
 * `X-Request-Id`.
 */
function wholeResponse(response: object): object {
  if ('$ref' in response) return response;
  const { schema, headers, ...rest } = response as { schema?: string; headers?: object };
  return {
    ...rest,
    headers: { 'X-Request-Id': { $ref: '#/components/headers/X-Request-Id' }, ...headers },
    ...(schema !== undefined && {
      content: { 'application/json': { schema: { $ref: `#/components/schemas/${schema}` } } },
    }),
  };
}

function mapValues<Value, Mapped>(of: Readonly<Record<string, Value>>, map: (value: Value) => Mapped) {
  return Object.fromEntries(Object.entries(of).map(([name, value]) => [name, map(value)]));
}

/** Request bodies by operationId. */
function bodySchemas({
  importKeysMax,
  changeMembersMax,
  leakSecretsMax,
}: Bounds): Readonly<Record<string, z.ZodType>> {
  return {
    issueKey: issueKeyBody,
    changeKey: changeKeyBody,
    issueSecret: issueSecretBody,
    grantKey: grantBody,
    findSecret: whoamiBody,
    importDirectory: importBody(importKeysMax),
    findInDirectory: directoryIdsBody(importKeysMax),
    reportLeaks: leaksBody(leakSecretsMax),
    reportChange: reportedChangeBody(changeMembersMax),
    makegood: makegoodBody,
    simulate: simulateBody,
    sendAgain: sendAgainBody,
  };
}

/** Schemas of responses and of their parts, by their names in the document. */
const components = {
  Callers: callers,
  Changes: changesPage,
  DeletedKey: deletedKey,
  Deliveries: deliveriesPage,
  DeliveredEvent: deliveredEvent,
  Delivery: deliveryShown,
  DigestStart: digestStart,
  DirectoryIds: directoryIds,
  DirectoryPage: directoryPage,
  Events: eventsPage,
  Grant: grantShown,
  Imported: imported,
  IssuedKey: issuedKey,
  KeptOfId: keptOfIdShown,
  Key: keyDetail,
  KeyDefinition: keyDefinition,
  KeyItem: keyItem,
  KeyLimits: limitsSteps,
  KeyPage: keyPage,
  KeyState: keyState,
  KeyUsage: keyUsage,
  JudgedSecrets: judgedSecrets,
  LeakedSecrets: leakedSecrets,
  Makegood: makegoodShown,
  MonthUsage: monthPage,
  Operations: operationsPage,
  Owner: owner,
  PlanDistribution: planDistribution,
  FlushedCounts: flushedCounts,
  PlanTrial: planTrial,
  Plans: plansPage,
  ProcessId: processId,
  RetriedPlan: retriedPlan,
  SentAgain: sentAgain,
  Settings: settingsShown,
  Simulation: simulationShown,
  State: fleetState,
  Traffic: traffic,
  Upstreams: upstreamsPage,
  UsageRow: usageRow,
  Version: version,
  WhatHolds: whatHolds,
  WindowName: limitName,
};

function componentSchemas(): Readonly<Record<string, JsonSchema>> {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries<z.ZodType>(components)) registry.add(schema, { id });
  const made = z.toJSONSchema(registry, { ...conversion, uri: (id) => `#/components/schemas/${id}` });
  return Object.fromEntries(
    Object.entries(made.schemas).map(([id, { $schema: _, $id: __, ...schema }]) => [id, schema]),
  );
}

function jsonSchema(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, conversion);
  return rest;
}

const conversion = {
  io: 'input',
  override({ zodSchema, jsonSchema: made }) {
    delete made.readOnly;
    // A schema from `membersByName` is a pipe of two schemas. The first schema rejects the reserved name, and the
    // second schema describes the members.
    const isByName = zodSchema instanceof z.ZodPipe && zodSchema.in instanceof z.ZodUnknown;
    const stated = isByName ? zodSchema.out : z.globalRegistry.get(zodSchema)?.of;
    if (stated === undefined) return;
    const { description } = made;
    for (const name of Object.keys(made)) delete made[name];
    Object.assign(made, jsonSchema(stated as z.ZodType), description === undefined ? {} : { description });
  },
} satisfies z.core.ToJSONSchemaParams;
