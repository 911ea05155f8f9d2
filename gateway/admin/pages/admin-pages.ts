import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { ServedFile } from '../../request/pages/served-file.ts';
import { createServedFile } from '../../request/pages/served-file.ts';
import { type AdminResponse, errorResponse } from '../admin-response.ts';
import { assetPath, assets, importMap, modules, pagePath } from './assets.ts';
import { matchPage } from './browser/page-paths.js';

/** Answers a request for an operators' page, or for a file that the pages load. Any other path gets 404. */
export type AdminPages = (
  method: string | undefined,
  path: string,
  headers: IncomingHttpHeaders,
) => Promise<AdminResponse>;

/**
 * Serves the operators' pages: one HTML document, and the modules that render the pages in the browser from the admin
 * API. These files contain no data, so they need no token. A file is read and compressed at its first request.
 */
export function createAdminPages(): AdminPages {
  const page = createServedFile({
    type: 'text/html; charset=utf-8',
    fields: ['Content-Security-Policy', contentSecurityPolicy, 'X-Frame-Options', 'DENY'],
    cacheControl,
    read: async () => Buffer.from(document),
  });
  const files = new Map<string, ServedFile>(
    assets.map(({ name, type, read }) => [assetPath(name), createServedFile({ type, cacheControl, read })]),
  );

  return async (method, path, headers) => {
    const file = files.get(path) ?? (matchPage(path) && page);
    const isRead = method === 'GET' || method === 'HEAD';
    if (file === undefined) {
      const isPage = isRead && headers.accept?.includes('text/html');
      return isPage ? notFoundPage() : errorResponse('not_found');
    }
    if (!isRead) return errorResponse('method_not_allowed', undefined, { Allow: 'GET, HEAD' });
    const { status, fields, body } = await file.respond(headers);
    return { status, body, fields: byName(fields) };
  };

  /** For browsers: the page that says that there is no such page, with links to the others. */
  async function notFoundPage(): Promise<AdminResponse> {
    const { fields, body } = await page.respond({});
    return { status: 404, body, fields: byName(fields) };
  }
}

/**
 * The browser revalidates each file at each use, and mostly gets a 304. After an upgrade, the browser therefore uses no
 * module of the older version.
 */
const cacheControl = 'no-cache';

const importMapText = JSON.stringify(importMap);

/**
 * Allows only files of this origin, no inline scripts or styles except the import map, no form submission, and no
 * frame around the page. The policy keeps scripts that an attacker injects, for example in a key's name, from reading
 * the token.
 */
const contentSecurityPolicy = [
  "default-src 'self'",
  `script-src 'self' 'sha256-${hash('sha256', importMapText, 'base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const document = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Tollgate</title>
<script src="${pagePath('before-paint.js')}"></script>
<link rel="icon" href="${pagePath('icon.svg')}" type="image/svg+xml">
<link rel="stylesheet" href="${assetPath('uplot.css')}">
<link rel="stylesheet" href="${pagePath('styles.css')}">
<script type="importmap">${importMapText}</script>
${modules.map((name) => `<link rel="modulepreload" href="${assetPath(name)}">`).join('\n')}
<script type="module" src="${pagePath('main.js')}"></script>
</head>
<body>
<div id="app"></div>
<noscript>These pages need JavaScript. The same data as JSON, with a token: /api/v1/state</noscript>
</body>
</html>
`;

function byName(flat: readonly string[]): Record<string, string> {
  const fields: Record<string, string> = {};
  for (let i = 0; i < flat.length; i += 2) fields[flat[i] ?? ''] = flat[i + 1] ?? '';
  return fields;
}
