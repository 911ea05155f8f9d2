import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { apiDocumentPath, type Settings } from '../../shared/model.ts';
import { createServedFile, type ServedFile } from './served-file.ts';

/** What the page of the API reference loads, by name: the same for every configuration, so it is made once a process. */
export type ReferenceAssets = ReadonlyMap<string, ServedFile>;

export function createReferenceAssets(): ReferenceAssets {
  return new Map([
    ['swagger-ui.js', fileOf(script, 'swagger-ui-dist/swagger-ui-bundle.js')],
    ['swagger-ui.css', fileOf(style, 'swagger-ui-dist/swagger-ui.css')],
    ['page.js', fileOf(script, './browser/page.js')],
    ['page.css', fileOf(style, './browser/page.css')],
  ]);
}

const { resolve } = createRequire(import.meta.url);
const script = 'text/javascript; charset=utf-8';
const style = 'text/css; charset=utf-8';

/** @param specifier of a file in a package, or beside this file */
function fileOf(type: string, specifier: string): ServedFile {
  return createServedFile({ type, read: async () => readFile(resolve(specifier)) });
}

/**
 * The API reference: a page that shows the API document with Swagger UI. All of it comes from the gateway, so that it works
 * without another server, and calls nobody but the gateway, so that a key that is typed into it goes nowhere else.
 */
export function* apiReference(
  { path, document }: NonNullable<Settings['docs']>,
  assets: ReferenceAssets,
): Generator<readonly [path: string, file: ServedFile]> {
  const page = createServedFile({
    type: 'text/html; charset=utf-8',
    fields: ['Content-Security-Policy', contentSecurityPolicy],
    read: async () => Buffer.from(pageOf(path)),
  });
  const json = createServedFile({ type: 'application/json', read: async () => Buffer.from(document) });
  yield [path, page];
  yield [apiDocumentPath, json];
  for (const [name, file] of assets) yield [`${path}/${name}`, file];
}

/**
 * Scripts, styles and requests of this origin alone, no script or style in the page itself, and no frame around it: whatever
 * text an API document or a response holds, it cannot read the key.
 */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  // Swagger UI sets style attributes; a style element stays forbidden.
  "style-src-attr 'unsafe-inline'",
  // Swagger UI's icons.
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

function pageOf(path: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>API reference</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${path}/swagger-ui.css">
<link rel="stylesheet" href="${path}/page.css">
</head>
<body>
<div id="reference" data-document="${apiDocumentPath}"></div>
<noscript>This page needs JavaScript. The same as JSON: <a href="${apiDocumentPath}">${apiDocumentPath}</a></noscript>
<script src="${path}/swagger-ui.js"></script>
<script src="${path}/page.js"></script>
</body>
</html>
`;
}
