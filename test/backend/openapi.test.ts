import { readFile } from 'node:fs/promises';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { createApp } from '../../backend/app.ts';
import { createPetStore } from '../../backend/pets.ts';
import { errorBody, errors } from '../../gateway/shared/errors.ts';
import { openApiFaults } from '../support/openapi-faults.ts';
import { startStoreApp } from '../support/store-app.ts';

interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly responses: Record<string, unknown>;
}

const file = new URL('../../config/openapi.yaml', import.meta.url);
const text = await readFile(file, 'utf8');
const document = parse(text);
const operations = Object.entries<Record<string, Operation>>(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
);

describe('the API document and the store', () => {
  it('agree: the store serves every operation of the document', async () => {
    const store = await startStoreApp();
    await store.post('{"name":"n","categoryId":1}');
    for (const { method, path } of operations) {
      const body = method === 'POST' ? '{"name":"n","categoryId":1}' : null;
      const headers = { 'content-type': 'application/json' };
      const response = await fetch(`${store.url}/v1${path.replace('{petId}', '1')}`, {
        method,
        body,
        headers,
      });
      expect(response.ok, `${method} ${path} answered ${response.status}`).toBe(true);
    }
  });

  it('agree: the store serves no other operation except its health path', async () => {
    const app = createApp({ pets: createPetStore({ petsMax: 1 }), logger: pino({ level: 'silent' }) });
    await app.ready();
    const served = routesOf(app.printRoutes({ commonPrefix: false }));
    const documented = operations.flatMap(({ method, path }) =>
      (method === 'GET' ? ['GET', 'HEAD'] : [method]).map((each) => `${each} /v1${path}`),
    );
    expect(served.sort()).toEqual([...documented, 'GET /healthz', 'HEAD /healthz'].sort());
    await app.close();
  });
});

describe('the API document and the specification', () => {
  it('has nothing that a linter would find', () => expect(openApiFaults(document)).toEqual([]));

  it('holds its version, operations and tags', () => {
    expect(document.openapi).toMatch(/^3\.1\./);
    expect(document.info.version).toBe('1.0.0');
    expect(document.tags.map(({ name }: { name: string }) => name)).toEqual(['Store', 'Pets']);
    expect(
      operations.map(({ method, path, operation }) => `${method} ${path} ${operation.operationId}`),
    ).toEqual([
      'GET /pets listPets',
      'POST /pets createPet',
      'GET /pets/{petId} getPet',
      'GET /store/orders listOrders',
    ]);
  });

  it('marks getPet, and only it, as deprecated, with its dates and successor', () => {
    expect(document.paths['/pets/{petId}'].get).toMatchObject({
      deprecated: true,
      'x-deprecated-since': '2026-11-20',
      'x-deprecated-sunset': '2030-12-05',
      'x-deprecated-successor': 'listPets',
    });
    expect(operations.filter(({ operation }) => 'deprecated' in operation)).toHaveLength(1);
  });

  it('requires a bearer key for every operation', () => {
    expect(document.security).toEqual([{ bearerAuth: [] }]);
    expect(document.components.securitySchemes.bearerAuth).toMatchObject({ type: 'http', scheme: 'bearer' });
    expect(operations.filter(({ operation }) => 'security' in operation)).toEqual([]);
  });

  it('has both base addresses, which end in /v1', () => {
    const variables = document.servers.map((server: { variables: Record<string, { default: string }> }) =>
      Object.entries(server.variables),
    );
    expect(variables.flat().map(([name]: [string]) => name)).toEqual(['base_url', 'staging_base_url']);
    for (const [, { default: url }] of variables.flat()) expect(url).toMatch(/^https:.*\/v1$/);
  });

  it.each([
    ['listPets', ['200', '401', '429']],
    ['createPet', ['201', '400', '401', '429']],
    ['getPet', ['200', '401', '404', '429']],
    ['listOrders', ['200', '401', '429']],
  ])('%s lists the responses %j', (operationId, expected) => {
    const found = operations.find(({ operation }) => operation.operationId === operationId);
    expect(Object.keys(found?.operation.responses ?? {})).toEqual(expect.arrayContaining(expected));
  });

  it('has the records as specified', () => {
    const { PetStatus, NewPet, Pet, Pets, Error: ErrorBody } = document.components.schemas;
    const int64 = { type: 'integer', format: 'int64' };
    expect(PetStatus).toEqual({ type: 'string', enum: ['available', 'pending', 'sold'] });
    expect(NewPet.required).toEqual(['name', 'categoryId']);
    expect(NewPet.properties).toMatchObject({ name: { type: 'string' }, categoryId: int64 });
    expect(NewPet.properties.status).toEqual({ $ref: '#/components/schemas/PetStatus' });
    expect(Pet.allOf).toMatchObject([
      { $ref: '#/components/schemas/NewPet' },
      { required: ['id'], properties: { id: int64 } },
    ]);
    expect(Pets).toEqual({ type: 'array', items: { $ref: '#/components/schemas/Pet' } });
    expect(ErrorBody.required).toEqual(['code', 'message', 'status']);
    expect(ErrorBody.properties).toMatchObject({ code: { type: 'string' }, status: { type: 'integer' } });
  });

  it('puts the three rate-limit headers on every response', () => {
    const successes = operations.map(
      ({ operation }) => operation.responses['200'] ?? operation.responses['201'],
    );
    const names = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'];
    for (const response of [...successes, ...Object.values(document.components.responses)]) {
      expect(Object.keys((response as { headers: object }).headers)).toEqual(expect.arrayContaining(names));
    }
  });
});

describe('the API document and its own parts', () => {
  it('describes every header and record that it refers to, and refers to every one it describes', () => {
    const references = [...text.matchAll(/\$ref: '#\/components\/(\w+\/[\w-]+)'/g)].map(([, name]) => name);
    const described = Object.entries<object>(document.components)
      .filter(([kind]) => kind !== 'securitySchemes')
      .flatMap(([kind, parts]) => Object.keys(parts).map((name) => `${kind}/${name}`));
    expect([...new Set(references)].sort()).toEqual(described.sort());
  });

  it('lists every status of the gateway', () => {
    const { description } = document.components.responses.OtherError;
    const ofOperations = new Set(operations.flatMap(({ operation }) => Object.keys(operation.responses)));
    const named = [...ofOperations, ...description.match(/\b\d{3}\b/g)];
    for (const { status } of Object.values(errors)) expect(named).toContain(String(status));
  });

  it('shows errors as the store and the gateway make them', async () => {
    const example = (name: string) => document.components.responses[name].content['application/json'].example;
    const store = await startStoreApp();
    const headers = { 'content-type': 'application/json' };
    const invalid = await fetch(`${store.url}/v1/pets`, { method: 'POST', headers, body: '{"name":"Ada"}' });
    expect(await invalid.json()).toEqual(example('BadRequest'));
    expect(await (await fetch(`${store.url}/v1/pets/42`)).json()).toEqual(example('NotFound'));
    expect(JSON.parse(errorBody('invalid_key'))).toEqual(example('Unauthorized'));
    expect(JSON.parse(errorBody('operation_not_allowed'))).toEqual(example('OtherError'));
    const { code, message, status } = example('TooManyRequests');
    expect(JSON.parse(errorBody(code, message)).status).toBe(status);
  });

  /**
   * The rules of Redocly (recommended-strict) and Spectral (oas) that this document could break. Redocly and Spectral
   * accept the document.
   */
  it('has what linters ask of a document for readers', () => {
    const { info, servers, tags } = document;
    expect(info).toMatchObject({
      description: expect.stringMatching(/./),
      contact: { name: expect.stringMatching(/./), url: expect.stringMatching(/^https:/) },
      license: { name: expect.stringMatching(/./), identifier: expect.stringMatching(/./) },
    });
    for (const { description } of [...servers, ...tags]) expect(description).toMatch(/./);
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    const names = tags.map(({ name }: { name: string }) => name);
    for (const { path, operation } of operations) {
      expect(operation).toMatchObject({
        summary: expect.stringMatching(/./),
        description: expect.stringMatching(/./),
      });
      expect(names).toEqual(expect.arrayContaining([...operation.tags]));
      expect(operation.tags.length).toBeGreaterThan(0);
      expect(Object.keys(operation.responses)).toEqual(expect.arrayContaining([expect.stringMatching(/^4/)]));
      expect(path).not.toMatch(/\/$|\?/);
    }
    for (const { description } of Object.values<{ description: string }>(document.components.headers)) {
      expect(description).toMatch(/\.$/);
    }
  });

  it('describes Allow wherever it has a 405', () => {
    expect(document.components.responses.OtherError.headers).toHaveProperty('Allow');
  });
});

/** Parses the list of routes that Fastify prints. Each line is a path below its parent, and each level is indented by four columns. */
function routesOf(drawing: string): string[] {
  const parents: string[] = [];
  return [...drawing.matchAll(/^(.*)[├└]── (\S+) \(([^)]+)\)$/gm)].flatMap(
    ([, indent = '', part, methods = '']) => {
      const depth = indent.length / 4;
      parents[depth] = (depth === 0 ? '' : parents[depth - 1]) + String(part).replace(':petId', '{petId}');
      return methods.split(', ').map((method) => `${method} ${parents[depth]}`);
    },
  );
}
