import { hopByHopFields, namedInConnection } from './hop-by-hop.ts';
import { privateCacheControl } from './private-cache-control.ts';

interface ResponseFieldsOptions {
  readonly status: number;
  /** Flat name, value, … as the backend sent them. */
  readonly fields: readonly string[];
  /** Flat name, value, … that the gateway adds. */
  readonly ownFields: readonly string[];
}

/**
 * The fields of an answer as the client gets them, flat: the backend's without hop-by-hop and without copies of ours,
 * ours after them. Of a field that may come only once, the backend's first line passes.
 */
export function responseFields({ status, fields, ownFields }: ResponseFieldsOptions): string[] {
  const named = namedInConnection(fields);
  const passed: string[] = [];
  let cacheControl: string | undefined;
  /** The singletons that have come, by their bits. */
  let come = 0;
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] ?? '';
    const value = fields[i + 1] ?? '';
    const lowerName = name.toLowerCase();
    switch (lowerName) {
      case 'cache-control':
        cacheControl = cacheControl === undefined ? value : `${cacheControl}, ${value}`;
        continue;
      case 'content-length':
        // RFC 9110 §8.6: never with 204.
        if (status === 204) continue;
        break;
      default: {
        if (endsHere(lowerName) || named?.has(lowerName) || isAmong(ownFields, lowerName)) continue;
        const bit = singletonBits.get(lowerName) ?? 0;
        if ((come & bit) !== 0) continue;
        come |= bit;
      }
    }
    passed.push(name, value);
  }
  passed.push('Cache-Control', privateCacheControl(cacheControl));
  for (const part of ownFields) passed.push(part);
  return passed;
}

/** The fields of an interim response as the client gets them, flat: those of its own answer follow with that. */
export function interimFields(fields: readonly string[]): string[] {
  const named = namedInConnection(fields);
  const passed: string[] = [];
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] ?? '';
    const lowerName = name.toLowerCase();
    // A length would announce a body, and no interim response has one (RFC 9110 §8.6).
    if (endsHere(lowerName) || named?.has(lowerName) || lowerName === 'content-length') continue;
    passed.push(name, fields[i + 1] ?? '');
  }
  return passed;
}

/** Beside hop-by-hop fields those that the gateway states, or leaves out where it has nothing to state. */
const endingHere: ReadonlySet<string> = new Set([
  ...hopByHopFields,
  'transfer-encoding',
  'x-request-id',
  'deprecation',
  'sunset',
  'x-stability',
]);

/**
 * Fields of one value (RFC 9110 §5.5). Where two lines come, some readers take the first, others the last (§8.3) or
 * join them: the client and a cache before it would see different answers. The first is what Node's own
 * `IncomingMessage.headers` keeps of most of these; it joins Date, Content-Disposition, Content-Location and
 * Content-Range, which makes no valid value.
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

function endsHere(lowerName: string): boolean {
  return (
    endingHere.has(lowerName) ||
    lowerName.startsWith('x-ratelimit') ||
    lowerName.startsWith('ratelimit') ||
    // Whether a browser may read a response is the gateway's to say: it answers the preflights.
    lowerName.startsWith('access-control-')
  );
}

function isAmong(ownFields: readonly string[], lowerName: string): boolean {
  for (let i = 0; i < ownFields.length; i += 2) {
    const own = ownFields[i] ?? '';
    if (own.length === lowerName.length && own.toLowerCase() === lowerName)
      return lowerName !== 'link' && lowerName !== 'vary';
  }
  return false;
}
