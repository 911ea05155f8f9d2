import { hopByHopFields, namedInConnection } from './hop-by-hop.ts';

interface ResponseFieldsOptions {
  readonly status: number;
  /** The target's header fields, as a flat list of names and values. */
  readonly fields: readonly string[];
  /** The header fields that the gateway adds, as a flat list of names and values. */
  readonly ownFields: readonly string[];
}

/**
 * Makes the header fields of the response to the client: the target's fields, then the gateway's, as a flat list. The target's hop-by-hop
 * fields are dropped. A field of the gateway replaces the target's field of the same name, except `Link` and `Vary`. A field that must not
 * be repeated keeps only its first line.
 */
export function responseFields({ status, fields, ownFields }: ResponseFieldsOptions): string[] {
  const named = namedInConnection(fields);
  const passed: string[] = [];
  let cacheControl: string | undefined;
  /** A bit mask of the singleton fields that the loop has already copied. */
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
        // A 204 must not have Content-Length (RFC 9110 §8.6).
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

/** Makes the header fields of an interim response, as a flat list. The gateway adds its own fields only to the final response. */
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
 * Adds `private` to the target's Cache-Control. A response belongs to the key that requested it. Without `private`, a shared cache could
 * send a response with `public`, `s-maxage` or `must-revalidate` to other keys (RFC 9111 §3.5, §5.2.2.7).
 *
 * @returns the target's directives, unchanged if they already contain `private` or `no-store`
 */
export function privateCacheControl(cacheControl: string | undefined): string {
  if (cacheControl === undefined) return 'private';
  const directives = cacheControl.split(',').map((directive) => directive.replace(/^[\t ]+/, ''));
  if (directives.some((directive) => privateDirective.test(directive))) return cacheControl;
  const kept = directives.filter((directive) => !sharedDirective.test(directive));
  return ['private', ...kept].join(', ');
}

// Only space and tab are whitespace (RFC 9110 §5.6.3). A cache would read `private` with a trailing U+00A0 as another directive.
const privateDirective = /^(?:private|no-store)[\t ]*$/i;
/** Matches empty list elements, directives that contradict `private`, and directives that apply only to shared caches. */
const sharedDirective = /^(?:public|s-maxage=.*|proxy-revalidate)?[\t ]*$/i;

/** Fields of the target that the gateway always drops: hop-by-hop fields, and fields that only the gateway may send. */
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
 * Fields with a single value (RFC 9110 §5.5). Recipients treat a repeated field differently: some read the first line, some the last line
 * (§8.3 on Content-Type), some join both. If the gateway forwarded all lines, a client and its cache could read different values. The
 * gateway forwards only the first line. Node's `IncomingMessage.headers` would join some of these fields to an invalid value, for example
 * `Date`.
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
    // The gateway answers CORS preflights, so it also decides which origins may read responses.
    lowerName.startsWith('access-control-')
  );
}

/**
 * Whether a field of the gateway replaces the target's field of the same name. `Link` and `Vary` are lists, so the client gets the target's
 * field and the gateway's field.
 */
function isReplaced(ownFields: readonly string[], lowerName: string): boolean {
  for (let i = 0; i < ownFields.length; i += 2) {
    const own = ownFields[i] ?? '';
    if (own.length === lowerName.length && own.toLowerCase() === lowerName)
      return lowerName !== 'link' && lowerName !== 'vary';
  }
  return false;
}
