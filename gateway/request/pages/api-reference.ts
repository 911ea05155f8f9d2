import { apiDocumentPath, type Settings } from '../../shared/model.ts';
import { createServedFile, programFile, type ServedFile } from './served-file.ts';

/**
 * The files that the API reference requests, by file name. A process makes these files once, because they do not depend on the
 * configuration.
 */
export type ReferenceAssets = ReadonlyMap<string, ServedFile>;

export function createReferenceAssets(): ReferenceAssets {
  return new Map([
    ['swagger-ui.js', programFile('script', '#swagger-ui/swagger-ui-bundle.js')],
    ['swagger-ui.css', programFile('style', '#swagger-ui/swagger-ui.css')],
    ['theme.js', programFile('script', new URL('./browser/theme.js', import.meta.url))],
    ['page.js', programFile('script', new URL('./browser/page.js', import.meta.url))],
    ['page.css', programFile('style', new URL('./browser/page.css', import.meta.url))],
  ]);
}

/**
 * Makes the API reference, a page that shows the API document with Swagger UI. The gateway serves all files of the page, so the page
 * needs no other server. The page calls only the gateway, so no other server receives a key that a reader enters.
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
 * Allows only scripts, styles and requests of this origin. Inline scripts, style elements and frames around the page are forbidden. If the
 * text of an API document or a response contains a script, the script does not run, so it cannot read the key.
 */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  // Swagger UI needs style attributes. Style elements stay forbidden.
  "style-src-attr 'unsafe-inline'",
  // Swagger UI uses data URLs for its icons.
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
<meta name="color-scheme" content="light dark">
<script src="${path}/theme.js"></script>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${path}/swagger-ui.css">
<link rel="stylesheet" href="${path}/page.css">
</head>
<body>
<div id="reference" data-document="${apiDocumentPath}"></div>
<noscript>This page needs JavaScript. The API document as JSON: <a href="${apiDocumentPath}">${apiDocumentPath}</a></noscript>
<script src="${path}/swagger-ui.js"></script>
<script src="${path}/page.js"></script>
</body>
</html>
`;
}
