/**
 * An answer to a key belongs to that key (RFC 9111 §3.5): shared caches may not store it, whatever the backend says.
 *
 * @returns the backend's directives, made private unless they already were
 */
export function privateCacheControl(cacheControl: string | undefined): string {
  if (cacheControl === undefined) return 'private';
  const directives = cacheControl.split(',').map((directive) => directive.trim());
  const names = directives.map((directive) => directive.toLowerCase());
  if (names.includes('private') || names.includes('no-store')) return cacheControl;
  const kept = directives.filter((directive) => directive !== '' && !sharedDirective.test(directive));
  return ['private', ...kept].join(', ');
}

const sharedDirective = /^(public|s-maxage=.*|proxy-revalidate)$/i;
