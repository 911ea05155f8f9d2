import { hopByHopFields, namedInConnection } from './hop-by-hop.ts';

interface ResponseFieldsOptions {
  readonly status: number;
  /** Flat name, value, … as the target sent them. */
  readonly fields: readonly string[];
  /** Flat name, value, … that the gateway adds. */
  readonly ownFields: readonly string[];
}

/**
 * Makes the fields of the response to the client, flat: the target's fields, then the gateway's. Drops hop-by-hop fields, fields that
 * the gateway sets, and all but the first line of a field that may come only once.
 */
export function responseFields({ status, fields, ownFields }: ResponseFieldsOptions): string[] {
  const named = namedInConnection(fields);
  const passed: string[] = [];
  let cacheControl: string | undefined;
  /** A bit for each singleton field that was seen. */
  let seen = 0;
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] ?? '';
    const value = fields[i + 1] ?? '';
    const lowerName = name.toLowerCase();
    switch (lowerName) {
      case 'cache-control':
        cacheControl = cacheControl === undefined ? value : `${cacheControl}, ${value}`;
        continue;
      case 'content-length':
        // A 204 must not have one (RFC 9110 §8.6).
        if (status === 204) continue;
        break;
      default: {
        if (isDropped(lowerName) || named?.has(lowerName) || isReplaced(ownFields, lowerName)) continue;
        const bit = singletonBits.get(lowerName) ?? 0;
        if ((seen & bit) !== 0) continue;
        seen |= bit;
      }
    }
    passed.push(name, value);
  }
  passed.push('Cache-Control', privateCacheControl(cacheControl));
  for (const part of ownFields) passed.push(part);
  return passed;
}

/** Makes the fields of an interim response to the client, flat. The gateway adds its fields only to the final response. */
export function interimFields(fields: readonly string[]): string[] {
  const named = namedInConnection(fields);
  const passed: string[] = [];
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] ?? '';
    const lowerName = name.toLowerCase();
    // A 1xx must not have a Content-Length (RFC 9110 §8.6).
    if (isDropped(lowerName) || named?.has(lowerName) || lowerName === 'content-length') continue;
    passed.push(name, fields[i + 1] ?? '');
  }
  return passed;
}

/**
 * A response to a key's request belongs to that key. A shared cache may reuse it for others only with `public`, `s-maxage` or
 * `must-revalidate` (RFC 9111 §3.5). `private` forbids even that (§5.2.2.7).
 *
 * @returns the target's directives, made private unless they already were
 */
export function privateCacheControl(cacheControl: string | undefined): string {
  if (cacheControl === undefined) return 'private';
  const directives = cacheControl.split(',').map((directive) => directive.replace(/^[\t ]+/, ''));
  if (directives.some((directive) => privateDirective.test(directive))) return cacheControl;
  const kept = directives.filter((directive) => !sharedDirective.test(directive));
  return ['private', ...kept].join(', ');
}

// Only space and tab are whitespace (RFC 9110 §5.6.3). For a cache, `private` before U+00A0 is another directive.
const privateDirective = /^(?:private|no-store)[\t ]*$/i;
/** Directives that contradict `private` or are for shared caches, and empty list elements. */
const sharedDirective = /^(?:public|s-maxage=.*|proxy-revalidate)?[\t ]*$/i;

/** Hop-by-hop fields, and fields that only the gateway sends. The target's fields of these names are always dropped. */
const dropped: ReadonlySet<string> = new Set([
  ...hopByHopFields,
  'transfer-encoding',
  'x-request-id',
  'deprecation',
  'sunset',
  'x-stability',
  'x-key-expires',
]);

/**
 * Fields with a single value (RFC 9110 §5.5). If a field has two lines, recipients take the first, the last (§8.3 on Content-Type) or
 * both joined, so a client and a cache in front of it would read different responses. The first line passes, as in Node's
 * `IncomingMessage.headers`. But Node joins Date, Content-Disposition, Content-Location and Content-Range to an invalid value.
 */
const singletons = [
  'age',
  'content-disposition',
  'content-location',
  'content-range',
  'content-type',
  'date',
  'etag',
  'expires',
  'last-modified',
  'location',
  'retry-after',
];
const singletonBits: ReadonlyMap<string, number> = new Map(singletons.map((name, i) => [name, 1 << i]));

function isDropped(lowerName: string): boolean {
  return (
    dropped.has(lowerName) ||
    lowerName.startsWith('x-ratelimit') ||
    lowerName.startsWith('ratelimit') ||
    // The gateway answers CORS preflights, so it also decides which pages may read responses.
    lowerName.startsWith('access-control-')
  );
}

/** Whether the gateway's field replaces the target's. Both contribute to the lists `Link` and `Vary`. */
function isReplaced(ownFields: readonly string[], lowerName: string): boolean {
  for (let i = 0; i < ownFields.length; i += 2) {
    const own = ownFields[i] ?? '';
    if (own.length === lowerName.length && own.toLowerCase() === lowerName)
      return lowerName !== 'link' && lowerName !== 'vary';
  }
  return false;
}
