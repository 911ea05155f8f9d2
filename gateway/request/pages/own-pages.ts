import type { Settings } from '../../shared/model.ts';
import { apiReference, type ReferenceAssets } from './api-reference.ts';
import type { ServedFile } from './served-file.ts';

/**
 * The gateway's own pages on the public listener, by raw path. A configuration in which an operation has such a path is invalid.
 */
export type OwnPages = ReadonlyMap<string, OwnPage>;

/** `limits`: the page on which a key reads its own limits. `public`: a file of the API reference, which needs no key. */
export type OwnPage = { readonly kind: 'limits' } | { readonly kind: 'public'; readonly file: ServedFile };

export function createOwnPages(
  { limitsPath, docs }: Pick<Settings, 'limitsPath' | 'docs'>,
  assets: ReferenceAssets,
): OwnPages {
  const pages = new Map<string, OwnPage>();
  if (limitsPath !== undefined) pages.set(limitsPath, { kind: 'limits' });
  if (docs !== undefined) {
    for (const [path, file] of apiReference(docs, assets)) pages.set(path, { kind: 'public', file });
  }
  return pages;
}

/** Whether a page may be requested with this method. */
export function isPageMethod(method: string | undefined): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** The value of `Allow` when a page is requested with another method. */
export const pageMethods = 'GET, HEAD';
