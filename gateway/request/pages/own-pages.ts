import type { Settings } from '../../shared/model.ts';
import { apiReference, type ReferenceAssets } from './api-reference.ts';
import type { ServedFile } from './served-file.ts';

/**
 * What the gateway serves itself on the public listener, beside the operations of the API document, by raw path. The
 * configuration keeps these paths apart from those of the operations.
 */
export type OwnPages = ReadonlyMap<string, OwnPage>;

/** `limits`: where a key reads its own limits; `public`: a part of the API reference, which needs no key. */
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

/** Pages are read and nothing else. */
export function isPageMethod(method: string | undefined): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** The value of `Allow` on a page. */
export const pageMethods = 'GET, HEAD';
