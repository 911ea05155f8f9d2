import type { Settings } from '../../shared/model.ts';
import { createServedFile, programFile, type ServedFile } from './served-file.ts';

/** The files that the page for key holders requests, by file name. A process makes these files once. */
export type HolderAssets = ReadonlyMap<string, ServedFile>;

export function createHolderAssets(): HolderAssets {
  return new Map([
    ['holder.js', programFile('script', './browser/holder.js', revalidated)],
    ['holder.css', programFile('style', './browser/holder.css', revalidated)],
  ]);
}

/** Browsers revalidate each file at each use, so that a page never mixes files of two versions. */
const revalidated = { cacheControl: 'no-cache' };

/** A path that shows key holders the data of their key. A browser without a key gets the HTML page `page` instead. */
export interface HolderPath {
  readonly kind: 'holder';
  readonly part: HolderPart;
  readonly page?: ServedFile;
}

/** A part of the data of a key: its limits, its usage, the deprecated operations that it calls, or a new secret. */
export type HolderPart = 'limits' | 'usage' | 'deprecated' | 'rotate';

/**
 * Makes the paths for key holders below `limitsPath`: the state of the key, its usage, its calls of deprecated operations, and the
 * page that shows all of these in a browser.
 */
export function* holderPaths(
  limitsPath: string,
  { rotate }: Settings['selfService'],
): Generator<readonly [path: string, page: HolderPath]> {
  const page = createServedFile({
    type: 'text/html; charset=utf-8',
    fields: ['Content-Security-Policy', contentSecurityPolicy],
    ...revalidated,
    read: async () => Buffer.from(pageOf(limitsPath)),
  });
  yield [limitsPath, { kind: 'holder', part: 'limits', page }];
  yield [`${limitsPath}/usage`, { kind: 'holder', part: 'usage' }];
  yield [`${limitsPath}/deprecated`, { kind: 'holder', part: 'deprecated' }];
  if (rotate) yield [`${limitsPath}/rotate`, { kind: 'holder', part: 'rotate' }];
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
