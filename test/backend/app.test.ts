import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createPetStore } from '../../backend/pets.ts';
import { expectError, startStoreApp } from '../support/store-app.ts';

const int64Min = -(2n ** 63n);
const int64Max = 2n ** 63n - 1n;

describe('adding an animal', () => {
  it('returns 201 with the animal, its id and its location', async () => {
    const store = await startStoreApp();
    const response = await store.post('{"name":"Ada","categoryId":7,"status":"sold"}');
    expect(response.status).toBe(201);
    expect(response.headers.get('location')).toBe('/v1/pets/1');
    expect(await response.json()).toEqual({ id: 1, name: 'Ada', categoryId: 7, status: 'sold' });
  });

  it('omits the status when the client omitted it, also in later responses', async () => {
    const store = await startStoreApp();
    expect(await (await store.post('{"name":"Ada","categoryId":7}')).json()).not.toHaveProperty('status');
    expect(await (await fetch(`${store.url}/v1/pets/1`)).json()).not.toHaveProperty('status');
  });

  it('assigns ascending ids from 1', async () => {
    const store = await startStoreApp();
    for (const id of [1, 2, 3]) {
      expect(await (await store.post('{"name":"n","categoryId":1}')).json()).toMatchObject({ id });
    }
  });

  it('ignores fields that the specification does not name, including an id', async () => {
    const store = await startStoreApp();
    const response = await store.post('{"name":"Ada","categoryId":7,"id":99,"owner":{"deep":[1.5]}}');
    expect(await response.json()).toEqual({ id: 1, name: 'Ada', categoryId: 7 });
  });

  it('accepts a name of 1,000 characters, however many bytes they have', async () => {
    const store = await startStoreApp();
    const name = '🦊'.repeat(1_000);
    const response = await store.post(JSON.stringify({ name, categoryId: 1 }));
    expect(await response.json()).toMatchObject({ name });
  });

  it('returns 507 when the store is full, and keeps its animals', async () => {
    const store = await startStoreApp(createPetStore({ petsMax: 1 }));
    expect((await store.post('{"name":"Ada","categoryId":7}')).status).toBe(201);
    await expectError(await store.post('{"name":"Bo","categoryId":7}'), 507, 'storage_full');
    expect(await (await fetch(`${store.url}/v1/pets`)).json()).toHaveLength(1);
  });
});

describe('int64', () => {
  it('a categoryId is exact after a round trip', async () => {
    const store = await startStoreApp();
    await fc.assert(
      fc.asyncProperty(fc.bigInt(int64Min, int64Max), async (categoryId) => {
        const created = await (await store.post(`{"name":"n","categoryId":${categoryId}}`)).text();
        expect(created).toContain(`"categoryId":${categoryId}}`);
        const id = /"id":(\d+)/.exec(created)?.[1];
        expect(await (await fetch(`${store.url}/v1/pets/${id}`)).text()).toBe(created);
      }),
      { numRuns: 200, examples: [[int64Min], [int64Max], [2n ** 53n + 1n], [-(2n ** 53n) - 1n], [0n]] },
    );
  });

  it('ids are exact up to the greatest int64', async () => {
    const store = await startStoreApp(createPetStore({ petsMax: 10, firstId: int64Max - 2n }));
    for (const id of [int64Max - 2n, int64Max - 1n, int64Max]) {
      const created = await store.post('{"name":"n","categoryId":1}');
      expect(created.headers.get('location')).toBe(`/v1/pets/${id}`);
      const found = await (await fetch(`${store.url}/v1/pets/${id}`)).text();
      expect(found).toContain(`"id":${id},`);
      expect(await created.text()).toBe(found);
    }
    const after = await fetch(`${store.url}/v1/pets?after=${int64Max - 1n}`);
    expect(await after.text()).toBe(`[{"id":${int64Max},"name":"n","categoryId":1}]`);
  });

  it.each([
    ['1.0', '1'],
    ['1e3', '1000'],
    ['-0', '0'],
    ['12.50e1', '125'],
    ['9223372036854775807.000', '9223372036854775807'],
    ['922337203685477580700e-2', '9223372036854775807'],
    ['0e99999999999999999999', '0'],
  ])('%s is the integer %s, as in JSON Schema', async (sent, stored) => {
    const store = await startStoreApp();
    const response = await store.post(`{"name":"n","categoryId":${sent}}`);
    expect(await response.text()).toContain(`"categoryId":${stored}}`);
  });

  it.each([
    '1.5',
    '1e-3',
    '9223372036854775808',
    '-9223372036854775809',
    '9223372036854775807.5',
    '1e19',
    '1e400',
    '1e99999999999999999999',
    '1'.repeat(1_000_000),
    `1${'0'.repeat(500_000)}1`,
    '"1"',
    'null',
    'true',
    '[1]',
  ])('%.30s is no int64 and gets a 400 that names categoryId', async (sent) => {
    const store = await startStoreApp();
    const response = await store.post(`{"name":"n","categoryId":${sent}}`);
    expect(await expectError(response, 400, 'invalid_request')).toContain('categoryId');
  });
});

describe('listing', () => {
  const add = async (store: Awaited<ReturnType<typeof startStoreApp>>, count: number) => {
    for (let n = 1; n <= count; n++) {
      const status = n % 3 === 0 ? 'sold' : 'available';
      await (await store.post(`{"name":"n${n}","categoryId":${n},"status":"${status}"}`)).text();
    }
  };
  const ids = async (response: Response) => ((await response.json()) as { id: number }[]).map(({ id }) => id);

  it('gives an empty array for an empty store', async () => {
    const store = await startStoreApp();
    expect(await (await fetch(`${store.url}/v1/pets`)).text()).toBe('[]');
  });

  it('returns 20 by default, by ascending id, or 1 to 100 on request', async () => {
    const store = await startStoreApp();
    await add(store, 101);
    const upTo = (count: number) => Array.from({ length: count }, (_, place) => place + 1);
    expect(await ids(await fetch(`${store.url}/v1/pets`))).toEqual(upTo(20));
    expect(await ids(await fetch(`${store.url}/v1/pets?limit=1`))).toEqual(upTo(1));
    expect(await ids(await fetch(`${store.url}/v1/pets?limit=100`))).toEqual(upTo(100));
  });

  it('following rel="next" reads every matching animal once, and the last page has no Link', async () => {
    const store = await startStoreApp();
    await add(store, 21);
    const seen: number[] = [];
    let path: string | undefined = '/v1/pets?limit=2&status=sold';
    let pages = 0;
    while (path !== undefined) {
      const response: Response = await fetch(store.url + path);
      seen.push(...(await ids(response)));
      path = /^<([^>]+)>; rel="next"$/.exec(response.headers.get('link') ?? '')?.[1];
      pages++;
    }
    expect(seen).toEqual([3, 6, 9, 12, 15, 18, 21]);
    expect(pages).toBe(4);
  });

  it('gives no Link on a page that holds exactly the rest', async () => {
    const store = await startStoreApp();
    await add(store, 4);
    expect((await fetch(`${store.url}/v1/pets?limit=4`)).headers.get('link')).toBeNull();
    expect((await fetch(`${store.url}/v1/pets?limit=3`)).headers.get('link')).toBe(
      '</v1/pets?limit=3&after=3>; rel="next"',
    );
  });

  it.each([
    ['after=-9223372036854775808', [1, 2]],
    ['after=1', [2]],
    ['after=9223372036854775807', []],
    ['unknown=1&unknown=2&Limit=0&limit[]=0', [1, 2]],
  ])('?%s gives %j', async (query, expected) => {
    const store = await startStoreApp();
    await add(store, 2);
    expect(await ids(await fetch(`${store.url}/v1/pets?${query}`))).toEqual(expected);
  });

  it.each([
    ['limit=0', 'limit'],
    ['limit=101', 'limit'],
    ['limit=-1', 'limit'],
    ['limit=abc', 'limit'],
    ['limit=', 'limit'],
    ['limit=1.0', 'limit'],
    ['limit=%31%00', 'limit'],
    ['limit=99999999999999999999', 'limit'],
    ['limit=5&limit=6', 'limit'],
    ['status=lost', 'status'],
    ['status=', 'status'],
    ['status=Sold', 'status'],
    ['status=sold&status=sold', 'status'],
    ['status=%ff', 'status'],
    ['after=x', 'after'],
    ['after=1.5', 'after'],
    ['after=9223372036854775808', 'after'],
    ['after=1&after=2', 'after'],
  ])('?%s gets a 400 that names %s', async (query, field) => {
    const store = await startStoreApp();
    const response = await fetch(`${store.url}/v1/pets?${query}`);
    expect(await expectError(response, 400, 'invalid_request')).toContain(field);
  });

  it('all problems of a query are in one message', async () => {
    const store = await startStoreApp();
    const response = await fetch(`${store.url}/v1/pets?limit=0&status=lost&after=x`);
    expect(await expectError(response, 400, 'invalid_request')).toMatch(/limit.*status.*after/);
  });
});

describe('fetching', () => {
  it('an unknown animal gives 404', async () => {
    const store = await startStoreApp();
    await expectError(await fetch(`${store.url}/v1/pets/1`), 404, 'not_found');
    await expectError(await fetch(`${store.url}/v1/pets/${int64Max}`), 404, 'not_found');
    await expectError(await fetch(`${store.url}/v1/pets/${int64Min}`), 404, 'not_found');
  });

  it.each([
    'abc',
    '1.0',
    '01',
    '+1',
    '1e0',
    '%31%00',
    int64Max + 1n,
    '9'.repeat(20_000),
    '__proto__',
    'length',
  ])(
    'a petId of %.30s gives a 404 that names petId, because the specification has no 400 there',
    async (petId) => {
      const store = await startStoreApp();
      await store.post('{"name":"n","categoryId":1}');
      const message = await expectError(await fetch(`${store.url}/v1/pets/${petId}`), 404, 'not_found');
      expect(message).toContain('petId');
    },
  );

  it('HEAD is answered like GET, without the body', async () => {
    const store = await startStoreApp();
    await store.post('{"name":"n","categoryId":1}');
    for (const path of ['/v1/pets', '/v1/pets/1', '/v1/pets/2', '/v1/store/orders', '/healthz']) {
      const get = await fetch(store.url + path);
      const head = await fetch(store.url + path, { method: 'HEAD' });
      expect(head.status).toBe(get.status);
      expect(head.headers.get('content-length')).toBe(get.headers.get('content-length'));
      expect(await head.text()).toBe('');
    }
  });

  it('the orders are an empty array, and the health path gives ok', async () => {
    const store = await startStoreApp();
    expect(await (await fetch(`${store.url}/v1/store/orders`)).text()).toBe('[]');
    expect(await (await fetch(`${store.url}/healthz`)).json()).toEqual({ status: 'ok' });
  });
});
