import type { Settings } from '../model.ts';

/**
 * What the gateway serves itself on the public listener, beside the operations of the API document, by raw path. The
 * configuration keeps these paths apart from those of the operations.
 */
export type OwnPages = ReadonlyMap<string, OwnPage>;

/** `limits`: where a key reads its own limits. */
export interface OwnPage {
  readonly kind: 'limits';
}

export function createOwnPages({ limitsPath }: Pick<Settings, 'limitsPath'>): OwnPages {
  const pages = new Map<string, OwnPage>();
  if (limitsPath !== undefined) pages.set(limitsPath, { kind: 'limits' });
  return pages;
}

/** Pages are read and nothing else. */
export function isPageMethod(method: string | undefined): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** The value of `Allow` on a page. */
export const pageMethods = 'GET, HEAD';
