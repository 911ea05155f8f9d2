import type { IncomingHttpHeaders } from 'node:http';
import { createServedFile, programFile, type ServedFile } from '../../request/pages/served-file.ts';
import { isPageMethod } from '../../request/path/own-answers.ts';

/** The files that the page for key holders requests, by file name. A process makes these files once. */
export type HolderAssets = ReadonlyMap<string, ServedFile>;

export function createHolderAssets(): HolderAssets {
  return new Map([
    ['holder.js', programFile('script', new URL('./browser/holder.js', import.meta.url), revalidated)],
    ['holder.css', programFile('style', new URL('./browser/holder.css', import.meta.url), revalidated)],
  ]);
}

/** Browsers revalidate each file at each use, so that a page never mixes files of two versions. */
const revalidated = { cacheControl: 'no-cache' };

/** A part of the data of a key: its limits, its usage, the deprecated operations that it calls, or a new secret. */
export type HolderPart = 'limits' | 'usage' | 'deprecated' | 'rotate';

/** Makes the page that shows a key holder all parts in a browser. */
export function createHolderPage(limitsPath: string): ServedFile {
  return createServedFile({
    type: 'text/html; charset=utf-8',
    fields: ['Content-Security-Policy', contentSecurityPolicy],
    ...revalidated,
    read: async () => Buffer.from(pageOf(limitsPath)),
  });
}

/** Whether a request at a path with data of a key gets the HTML page of this path, which needs no key. */
export function wantsPage({
  method,
  headers,
}: {
  readonly method?: string | undefined;
  readonly headers: IncomingHttpHeaders;
}): boolean {
  return headers.authorization === undefined && isPageMethod(method) && prefersHtml(headers.accept);
}

/** Whether `Accept` lists HTML and does not prefer JSON (RFC 9110 §12.5.1). Programs that accept everything get JSON. */
function prefersHtml(accept = ''): boolean {
  const weights = new Map(
    accept.split(',').map((range) => {
      const [type = '', ...parameters] = range.toLowerCase().split(';');
      const weight = parameters
        .find((one) => one.trim().startsWith('q='))
        ?.trim()
        .slice(2);
      return [type.trim(), weight === undefined ? 1 : Number(weight)];
    }),
  );
  const html = weights.get('text/html') ?? 0;
  return html > 0 && html >= (weights.get('application/json') ?? 0);
}

/**
 * Allows only scripts, styles and requests of this origin. Inline scripts and styles, form submissions and frames around the page are
 * forbidden. If the text of a response contains a script, the script does not run, so it cannot read the key.
 */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  'img-src data:',
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

function pageOf(limitsPath: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Your API key</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${limitsPath}/holder.css">
<script type="module" src="${limitsPath}/holder.js"></script>
</head>
<body>
<main id="holder" data-limits="${limitsPath}">
<h1>Your API key</h1>
<form>
<label for="key">API key</label>
<input id="key" type="password" autocomplete="off" spellcheck="false" required>
<button>Show</button>
</form>
<p class="muted">The key stays in the memory of this page and is sent only to this server. The key is gone when you close the page.</p>
<p id="failure" role="alert" hidden></p>
<div id="shown" hidden></div>
</main>
<noscript>This page needs JavaScript. The same data as JSON: <code>curl -H "Authorization: Bearer $API_KEY" …${limitsPath}</code></noscript>
</body>
</html>
`;
}
