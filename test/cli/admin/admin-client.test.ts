import { describe, expect, it } from 'vitest';
import { listChangesWire } from '../../../gateway/admin/wires/changes.ts';
import { createAdminClient } from '../../../gateway/cli/admin/admin-client.ts';
import { readList } from '../../../gateway/cli/admin/read/read-list.ts';
import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { startStubAdmin } from '../../support/stub-admin.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';

const bounds = { adminCallTimeoutMs: 60_000, adminReplyBytesMax: 10_000 };
const change = {
  at: '2026-11-22T10:00:00Z',
  action: 'reload',
  text: 'the configuration was reloaded',
  by: 'file',
  before: 'a',
  process: 'p',
  processes: 1,
};

function clientOf(url: string, own: Partial<typeof bounds> = {}) {
  return createAdminClient({ url: new URL(url), token: 'x' }, tunedBounds({ ...bounds, ...own }));
}

const changesWire = listChangesWire(defaultBounds);
const changesPage = { wire: changesWire, member: 'changes', perPage: 200 };

describe('the client of the admin API', () => {
  it('gives up on a gateway that never responds, and states how long it waited', async () => {
    const { url } = await startStubAdmin(() => undefined);
    const hasty = clientOf(url, { adminCallTimeoutMs: 300 });
    await expect(hasty.ask(changesWire)).rejects.toMatchObject({
      kind: 'passing',
      message: expect.stringMatching(
        /^No server answers at http:\/\/127\.0\.0\.1:\d+ \(no response within 0\.3 s\): start the gateway/,
      ),
    });
  });

  it('stops reading a response that is longer than its bound', async () => {
    const body = (octets: number) => JSON.stringify({ isComplete: true, changes: [] }).padEnd(octets);
    const short = await startStubAdmin(() => ({ body: body(10_000) }));
    expect((await clientOf(short.url).ask(changesWire)).body.changes).toEqual([]);
    const long = await startStubAdmin(() => ({ body: body(10_001) }));
    await expect(clientOf(long.url).ask(changesWire)).rejects.toThrow('more than 10000 octets');
  });

  it('follows pages, also empty pages, until it has all requested entries', async () => {
    const pages: Record<string, object> = {
      '/changes?limit=3': {
        changes: [
          { ...change, id: '5-1' },
          { ...change, id: '4-1' },
        ],
        next: '4-1',
      },
      '/changes?after=4-1&limit=1': { changes: [], next: '3-9' },
      '/changes?after=3-9&limit=1': { changes: [{ ...change, id: '3-1' }], next: '3-1' },
    };
    const stub = await startStubAdmin((path) => ({
      body: { isComplete: true, ...pages[path.slice('/api/v1'.length)] },
    }));
    const { body, json } = await readList(clientOf(stub.url), changesPage, {}, 3);
    expect(body.changes.map(({ id }) => id)).toEqual(['5-1', '4-1', '3-1']);
    expect(json).toMatchObject({
      isComplete: true,
      next: '3-1',
      changes: [{ id: '5-1' }, { id: '4-1' }, { id: '3-1' }],
    });
    expect(stub.asked).toHaveLength(3);
  });

  it('ends when a page is its own next page', async () => {
    const stub = await startStubAdmin(() => ({ body: { isComplete: true, changes: [], next: '1-1' } }));
    expect((await readList(clientOf(stub.url), changesPage, {}, 50)).body.changes).toEqual([]);
    expect(stub.asked).toHaveLength(2);
  });

  it('ignores unknown members of a later version', async () => {
    const stub = await startStubAdmin(() => ({
      body: { isComplete: true, changes: [{ ...change, id: '1-1', reason: { why: 'new' } }], isNew: true },
    }));
    const { body, json } = await clientOf(stub.url).ask(changesWire);
    expect(body.changes[0]).toEqual({ ...change, id: '1-1' });
    expect(json).toMatchObject({ isNew: true });
  });
});
