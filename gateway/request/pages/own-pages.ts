import type { Settings } from '../../shared/model.ts';
import { apiReference, type ReferenceAssets } from './api-reference.ts';
import type { ServedFile } from './served-file.ts';

/**
 * The gateway's own pages on the public listener, by raw path. The configuration is refused if an operation has the path of a page.
 */
export type OwnPages = ReadonlyMap<string, OwnPage>;

/** `limits`: a key reads its own limits. `public`: a file of the API reference, which needs no key. */
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

/** Pages can only be read. */
export function isPageMethod(method: string | undefined): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** The value of `Allow` on a page. */
export const pageMethods = 'GET, HEAD';
