import { hash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { createAdminPages } from '../../../gateway/admin/pages/admin-pages.ts';

const pages = createAdminPages();
const get = (path: string, headers: IncomingHttpHeaders = {}) => pages('GET', path, headers);

/** The paths of all files that a browser loads for the document. */
let loaded: readonly string[];
let documentText: string;
beforeAll(async () => {
  documentText = String((await get('/')).body);
  const inDocument = [...documentText.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path = '']) => path);
  const imports: Record<string, string> = JSON.parse(
    /<script type="importmap">(.*?)<\/script>/.exec(documentText)?.[1] ?? '',
  ).imports;
  loaded = [...new Set([...inDocument, ...Object.values(imports)])];
});

describe('the pages of operators', () => {
  it('are one document on each path of a page, and do not exist on other paths', async () => {
    for (const path of ['/', '/keys', '/keys/acme', '/keys/a%2Fb']) {
      expect([path, (await get(path)).status, String((await get(path)).body)]).toEqual([
        path,
        200,
        documentText,
      ]);
    }
    for (const path of [
      '/nowhere',
      '/keys/',
      '/keys/a/b',
      '/keys/%ff',
      '/index.html',
      '/assets/',
      '/assets/admin/pages/browser/main.ts',
      '/assets/admin/pages/admin-pages.ts',
      '/assets/admin/pages/browser/tsconfig.json',
      '//',
    ]) {
      expect([path, (await get(path)).status]).toEqual([path, 404]);
    }
    const html = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
    const unknown = await get('/nowhere', html);
    expect([unknown.status, String(unknown.body)]).toEqual([404, documentText]);
    expect(JSON.parse(String((await pages('POST', '/nowhere', html)).body)).code).toBe('not_found');
    const { status, fields } = await pages('POST', '/keys', {});
    expect([status, fields?.Allow]).toEqual([405, 'GET, HEAD']);
  });

  it('may load only files of this origin and the import map, by its hash', async () => {
    const { fields } = await get('/');
    const importMap = /<script type="importmap">(.*?)<\/script>/.exec(documentText)?.[1] ?? '';
    expect(fields?.['Content-Security-Policy']?.split('; ')).toEqual([
      "default-src 'self'",
      `script-src 'self' 'sha256-${hash('sha256', importMap, 'base64')}'`,
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ]);
    expect(fields).toMatchObject({
      'X-Frame-Options': 'DENY',
      'Referrer-Policy': 'no-referrer',
      'X-Content-Type-Options': 'nosniff',
    });
    // The import map is the only inline script, and there is no inline style.
    expect(documentText.match(/<script(?![^>]* src=)/g)).toHaveLength(1);
    expect(documentText).not.toMatch(/<style|style=|\son\w+=/);
  });

  it('name every module that they import in the document and no other, and the gateway serves each module', async () => {
    const imported = new Set<string>();
    for (const path of loaded.filter((path) => path.endsWith('.js'))) {
      const { status, body } = await get(path);
      expect([path, status]).toEqual([path, 200]);
      for (const [, specifier = ''] of String(body).matchAll(/from '(\.{1,2}\/[^']+\.js)'/g)) {
        imported.add(new URL(specifier, `http://pages${path}`).pathname);
      }
    }
    expect([...imported].filter((path) => !loaded.includes(path))).toEqual([]);
    const unused = loaded.filter((path) => /^\/assets\/.+\/.+\.js$/.test(path) && !imported.has(path));
    expect(unused.filter((path) => !/\/(main|before-paint)\.js$/.test(path))).toEqual([]);
    expect(imported.size).toBeGreaterThan(10);
  });

  it('are at most 170 kB compressed, all of them together', async () => {
    const sizes = await Promise.all(
      ['/', ...loaded].map(async (path) => {
        const { fields, body } = await get(path, { 'accept-encoding': 'gzip, br' });
        return { path, bytes: Buffer.byteLength(body), coding: fields?.['Content-Encoding'] };
      }),
    );
    const bytes = sizes.reduce((sum, size) => sum + size.bytes, 0);
    expect(bytes, JSON.stringify(sizes)).toBeLessThan(170_000);
    expect(sizes.find(({ path }) => path === '/assets/admin/pages/browser/main.js')?.coding).toBe('br');
  });

  it('have one picture below 100 kB in the README and one in the page beside the code, and the gateway serves neither', async () => {
    for (const page of ['../../../README.md', '../../../gateway/admin/README.md']) {
      const file = new URL(page, import.meta.url);
      const pictures = [...readFileSync(file, 'utf8').matchAll(/!\[[^\]]+\]\(([^)]+)\)/g)];
      expect([page, pictures.length]).toEqual([page, 1]);
      const picture = new URL(pictures[0]?.[1] ?? '', file);
      expect(statSync(picture).size).toBeLessThan(100_000);
      const { status } = await get(`/assets/admin/pages/${picture.pathname.split('/pages/')[1]}`);
      expect([page, status]).toEqual([page, 404]);
    }
  });

  it('are revalidated each time, with 304 and no content when they are unchanged', async () => {
    const { fields, body } = await get('/assets/admin/pages/browser/styles.css', {
      'accept-encoding': 'gzip',
    });
    expect(fields).toMatchObject({
      'Cache-Control': 'no-cache',
      'Content-Encoding': 'gzip',
      Vary: 'Accept-Encoding',
    });
    const file = readFileSync(
      new URL('../../../gateway/admin/pages/browser/styles.css', import.meta.url),
      'utf8',
    );
    expect(String(gunzipSync(body))).toBe(file);
    const again = await get('/assets/admin/pages/browser/styles.css', {
      'accept-encoding': 'gzip',
      'if-none-match': fields?.ETag,
    });
    expect([again.status, again.body, again.fields?.ETag]).toEqual([304, '', fields?.ETag]);
  });
});
