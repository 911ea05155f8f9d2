import type { IncomingHttpHeaders } from 'node:http';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { createServedFile } from '../../../gateway/request/pages/served-file.ts';

const text = 'a line that compresses well\n'.repeat(200);

/**
 * Requests the file with these header fields. Returns the status, the header fields and the decoded body of the
 * response.
 */
async function ask(file: ReturnType<typeof createServedFile>, headers: IncomingHttpHeaders = {}) {
  const { status, fields, body } = await file.respond(headers);
  const byName = new Map<string, string>();
  for (let i = 0; i < fields.length; i += 2) byName.set(fields[i] ?? '', fields[i + 1] ?? '');
  const coding = byName.get('Content-Encoding');
  const bytes = Buffer.from(body);
  const plain = coding === 'br' ? brotliDecompressSync(bytes) : coding === 'gzip' ? gunzipSync(bytes) : bytes;
  return { status, fields: byName, coding, length: bytes.length, text: plain.toString() };
}

function file(content = text) {
  let reads = 0;
  const read = async () => {
    reads += 1;
    return Buffer.from(content);
  };
  return { served: createServedFile({ type: 'text/plain', read }), reads: () => reads };
}

describe('a served file', () => {
  it.each([
    [undefined, undefined],
    ['', undefined],
    ['identity', undefined],
    ['gzip', 'gzip'],
    ['gzip, deflate, br, zstd', 'br'],
    ['BR;q=0.5,GZIP', 'br'],
    ['br;q=0, gzip', 'gzip'],
    ['br; q=0.000,gzip ;Q=0', undefined],
    ['br;q=0.001', 'br'],
    ['brotli, x-gzip, gzipped', undefined],
  ])('with Accept-Encoding %j is sent in the coding %s', async (accepted, coding) => {
    const response = await ask(file().served, accepted === undefined ? {} : { 'accept-encoding': accepted });
    expect([response.status, response.coding, response.text]).toEqual([200, coding, text]);
    expect(response.fields.get('Content-Length')).toBe(String(response.length));
    expect(response.fields.get('Vary')).toBe('Accept-Encoding');
    expect(response.fields.get('X-Content-Type-Options')).toBe('nosniff');
  });

  it('gives 304 to a client with the same representation, and 200 to all others', async () => {
    const { served } = file();
    const tagOf = async (accepted: string) =>
      (await ask(served, { 'accept-encoding': accepted })).fields.get('ETag') ?? '';
    const [plain, zipped] = [await tagOf(''), await tagOf('gzip')];
    expect(plain).not.toBe(zipped);
    for (const known of [zipped, `W/${zipped}`, `"other", ${zipped}`, '*']) {
      const response = await ask(served, { 'accept-encoding': 'gzip', 'if-none-match': known });
      expect([response.status, response.text]).toEqual([304, '']);
      expect([...response.fields.keys()]).toEqual(expect.arrayContaining(['ETag', 'Cache-Control', 'Vary']));
      expect(response.fields.has('Content-Encoding')).toBe(false);
    }
    for (const known of [plain, zipped.slice(0, -2), zipped.replaceAll('"', ''), '']) {
      const response = await ask(served, { 'accept-encoding': 'gzip', 'if-none-match': known });
      expect([known, response.status]).toEqual([known, 200]);
    }
    expect((await ask(file(`${text}more`).served)).fields.get('ETag')).not.toBe(plain);
  });

  it('that is small is not compressed', async () => {
    expect((await ask(file('short').served, { 'accept-encoding': 'br' })).coding).toBeUndefined();
  });

  it('is read once, even for simultaneous first requests, and one buffer serves all requests', async () => {
    const { served, reads } = file();
    expect(reads()).toBe(0);
    const responses = await Promise.all(
      Array.from({ length: 1_000 }, () => served.respond({ 'accept-encoding': 'br' })),
    );
    expect(new Set(responses.map(({ body }) => body)).size).toBe(1);
    expect(reads()).toBe(1);
  });

  it('is read again by the next request after a failed read', async () => {
    let isThere = false;
    const read = async () => {
      if (!isThere) throw new Error('not there');
      return Buffer.from('there');
    };
    const served = createServedFile({ type: 'text/plain', read });
    await expect(served.respond({})).rejects.toThrow('not there');
    isThere = true;
    expect((await ask(served)).text).toBe('there');
  });
});
