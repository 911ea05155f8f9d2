/**
 * An answer to a key belongs to that key (RFC 9111 §3.5): shared caches may not store it, whatever the backend says.
 *
 * @returns the backend's directives, made private unless they already were
 */
export function privateCacheControl(cacheControl: string | undefined): string {
  if (cacheControl === undefined) return 'private';
  const directives = cacheControl.split(',').map((directive) => directive.replace(/^[\t ]+/, ''));
  if (directives.some((directive) => privateDirective.test(directive))) return cacheControl;
  const kept = directives.filter((directive) => !sharedDirective.test(directive));
  return ['private', ...kept].join(', ');
}

// Space and tab alone are whitespace (RFC 9110 §5.6.3): to a cache, `private` before U+00A0 is another directive.
const privateDirective = /^(?:private|no-store)[\t ]*$/i;
/** An empty one says nothing and goes with them. */
const sharedDirective = /^(?:public|s-maxage=.*|proxy-revalidate)?[\t ]*$/i;
