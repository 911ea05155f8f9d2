import type { IncomingHttpHeaders } from 'node:http';
import type { Settings } from '../../shared/model.ts';
import { apiReference, createReferenceAssets } from './api-reference.ts';
import { createHolderAssets, type HolderPath, holderPaths } from './holder-page.ts';
import type { ServedFile } from './served-file.ts';

/**
 * The gateway's own pages on the public listener, by path. A configuration is invalid if one of its operations has the path of a page.
 */
export type OwnPages = ReadonlyMap<string, OwnPage>;

/** A page of the gateway. `public`: a file that needs no key. `leaks`: the path that accepts reports of leaked secrets. */
export type OwnPage =
  | { readonly kind: 'public'; readonly file: ServedFile }
  | HolderPath
  | { readonly kind: 'leaks' };

/** The files of all pages. The files do not depend on the configuration, so a process makes them once. */
export type PageAssets = ReturnType<typeof createPageAssets>;

export function createPageAssets() {
  return { reference: createReferenceAssets(), holder: createHolderAssets() };
}

export function createOwnPages(
  {
    limitsPath,
    leaksPath,
    selfService,
    docs,
  }: Pick<Settings, 'limitsPath' | 'leaksPath' | 'selfService' | 'docs'>,
  assets: PageAssets,
): OwnPages {
  const pages = new Map<string, OwnPage>();
  if (limitsPath !== undefined) {
    for (const [path, page] of holderPaths(limitsPath, selfService)) pages.set(path, page);
    for (const [name, file] of assets.holder) pages.set(`${limitsPath}/${name}`, { kind: 'public', file });
  }
  if (leaksPath !== undefined) pages.set(leaksPath, { kind: 'leaks' });
  if (docs !== undefined) {
    for (const [path, file] of apiReference(docs, assets.reference))
      pages.set(path, { kind: 'public', file });
  }
  return pages;
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

/** Whether a page may be requested with this method. */
export function isPageMethod(method: string | undefined): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** The value of `Allow` when a page is requested with another method. */
export const pageMethods = 'GET, HEAD';
