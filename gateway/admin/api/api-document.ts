import { readFile } from 'node:fs/promises';
import * as z from 'zod';
import { keyActions } from '../../fleet/changes.ts';
import { eventGroups, groupOf } from '../../fleet/event-text.ts';
import { keySchema, limits } from '../../keys/key-schema.ts';
import { limitFieldNames } from '../../keys/limit-fields.ts';
import { planShape } from '../../keys/plan-schema.ts';
import { planWindows } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { grantBody } from '../keys/change/ban-and-grant.ts';
import { changeKeyBody } from '../keys/change/edit-routes.ts';
import { importBody } from '../keys/change/import-route.ts';
import { issueKeyBody } from '../keys/change/issue-key.ts';
import { reportedChangeBody } from '../keys/change/reported-change.ts';
import { issueSecretBody } from '../keys/change/secret-routes.ts';
import { whoamiBody } from '../keys/change/whoami.ts';
import { keyStates } from '../keys/key-item.ts';
import { simulateBody } from '../plans/simulate-route.ts';

type JsonSchema = Record<string, unknown>;

export interface ApiDocument {
  readonly paths: Record<string, Record<string, { operationId: string; requestBody?: object }>>;
  readonly components: { readonly schemas: Record<string, JsonSchema> };
}

/**
 * The OpenAPI document of the admin API. `openapi.yaml` has its prose, parameters and responses. The request bodies, the members
 * of keys and plans, and the lists of names come from the schemas that the code itself uses. Making it takes a tenth of a second.
 */
export async function apiDocument(bounds: BodyBounds): Promise<ApiDocument> {
  // Most processes never get a request for the document.
  const [{ parse }, text] = await Promise.all([
    import('yaml'),
    readFile(new URL('./openapi.yaml', import.meta.url), 'utf8'),
  ]);
  const document = parse(text) as ApiDocument;
  const bodies = bodySchemas(bounds);
  for (const operation of Object.values(document.paths).flatMap((methods) => Object.values(methods))) {
    const body = bodies[operation.operationId];
    if (body === undefined) continue;
    const required = !body.safeParse({}).success;
    operation.requestBody = { required, content: { 'application/json': { schema: jsonSchema(body) } } };
  }
  const { schemas } = document.components;
  for (const schema of Object.values(schemas)) addStatedMembers(schema);
  for (const [name, made] of Object.entries(sharedSchemas())) schemas[name] = { ...made, ...schemas[name] };
  return document;
}

type BodyBounds = Pick<Bounds, 'importKeysMax' | 'changeMembersMax'>;

/** Request bodies by operationId. */
function bodySchemas({ importKeysMax, changeMembersMax }: BodyBounds): Readonly<Record<string, z.ZodType>> {
  return {
    issueKey: issueKeyBody,
    changeKey: changeKeyBody,
    issueSecret: issueSecretBody,
    grantKey: grantBody,
    findSecret: whoamiBody,
    importDirectory: importBody(importKeysMax),
    reportChange: reportedChangeBody(changeMembersMax),
    simulate: simulateBody,
  };
}

function sharedSchemas(): Readonly<Record<string, JsonSchema>> {
  return {
    KeyId: jsonSchema(keySchema.shape.id),
    LimitFields: jsonSchema(limits),
    WindowName: { enum: [...planWindows] },
    KeyState: { enum: [...keyStates] },
    EventKind: { enum: Object.keys(groupOf) },
    EventGroup: { enum: [...eventGroups] },
    ChangeAction: { enum: [...keyActions, 'token', 'reload', 'reload_failed'] },
  };
}

const statedMembers = {
  key: keySchema.shape,
  plan: planShape,
} satisfies Record<string, Readonly<Record<string, z.ZodType>>>;

/** Responses show these members of a plan under other names: `isCustom` and `windows`. */
const shownOtherwise: readonly string[] = ['custom', ...limitFieldNames];

interface StatedMarker {
  readonly of: keyof typeof statedMembers;
  readonly without?: readonly string[];
}

/**
 * Replaces `x-stated: { of: key, without: [secrets] }` by the members that an operator states of a key or plan. A response shows
 * these members as they were stated. So a new member of a key or plan is in the document as soon as it is in the schema.
 */
function addStatedMembers(schema: unknown): void {
  if (typeof schema !== 'object' || schema === null) return;
  for (const part of Object.values(schema)) addStatedMembers(part);
  if (!('x-stated' in schema)) return;
  const { of, without = shownOtherwise } = schema['x-stated'] as StatedMarker;
  const stated = Object.entries<z.ZodType>(statedMembers[of])
    .filter(([name]) => !without.includes(name))
    .map(([name, member]) => [name, jsonSchema(member)]);
  const own = 'properties' in schema ? schema.properties : undefined;
  delete schema['x-stated'];
  Object.assign(schema, { properties: { ...Object.fromEntries(stated), ...(own as object) } });
}

function jsonSchema(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    io: 'input',
    override({ zodSchema, jsonSchema: made }) {
      // `membersByName` first refuses the reserved name in any value. The record behind it states the members.
      const isByName = zodSchema instanceof z.ZodPipe && zodSchema.in instanceof z.ZodUnknown;
      if (isByName) Object.assign(made, jsonSchema(zodSchema.out as z.ZodType));
    },
  });
  return rest;
}
