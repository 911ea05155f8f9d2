import { keyIdBySecret } from './fuzz-keys.ts';
import { listOf, valuesOf } from './read-message.ts';
import type { ReadRequest } from './read-requests.ts';
import { onlyValue } from './read-responses.ts';
import { forgery } from './strange-parts.ts';

/** The operations that may reach the backend, from the specification. A path with two possible readings must not reach the backend. */
const operations: readonly (readonly [methods: readonly string[], path: RegExp])[] = [
  [['GET', 'HEAD', 'POST'], /^\/v1\/pets$/],
  [
    ['GET', 'HEAD'],
    /^\/v1\/pets\/(?!\.{1,2}$)(?!.*%(?:2f|5c|2e|25|[01][0-9a-f]|7f))[\w\-.~!$&'()*+,=:@%[\]|]+$/i,
  ],
  [['GET', 'HEAD'], /^\/v1\/store\/orders$/],
];

/** Fields from a client that the gateway must not forward. A `-` in a name stands for any byte except a letter or digit. */
const endsAtGateway =
  /^(authorization|proxy-(connection|authenticate|authorization)|te|trailer|upgrade|keep-alive|expect|forwarded)$/;
const ownField = /^(x-request-id|x-key-id|x-plan|x-forwarded-.*|host|content-length|transfer-encoding)$/;

/** Returns the faults of a request that the backend received. `original` is the client's request. */
export function judgeForwarded(forwarded: ReadRequest, original: ReadRequest): string[] {
  const name = `${forwarded.method} ${forwarded.target}`;
  const faults: string[] = [];
  const { host, target } = addressed(original);
  if (forwarded.method !== original.method || forwarded.target !== target) {
    faults.push(`the backend received ${name} where the client sent ${original.method} ${original.target}`);
  }
  if (host !== undefined && onlyValue(forwarded.fields, 'host') !== host)
    faults.push(`${name} came for ${onlyValue(forwarded.fields, 'host')}, the client addressed ${host}`);
  const path = plain(forwarded.target.split('?', 1)[0] ?? '');
  if (!operations.some(([methods, form]) => methods.includes(forwarded.method) && form.test(path))) {
    faults.push(`the backend received ${name}, which is no operation`);
  }
  const isSameBody = forwarded.body === original.body || (forwarded.body === undefined && mayBeCut(original));
  if (!isSameBody) {
    faults.push(
      `the backend received the body ${JSON.stringify(forwarded.body)} of ${JSON.stringify(original.body)}`,
    );
  }
  const keyId = presentedKey(original);
  const forwardedKeyId = onlyValue(forwarded.fields, 'x-key-id');
  if (keyId === undefined || forwardedKeyId !== keyId)
    faults.push(`${name} came as key ${forwardedKeyId}, the client was ${keyId}`);
  // RFC 9110 §7.6.1. Fields that the gateway sets are skipped, because their values do not come from the client.
  const named = new Set(listOf(original.fields, 'connection'));
  for (const field of forwarded.fields) {
    if (named.has(field.name) && !ownField.test(field.name) && !['connection', 'via'].includes(field.name)) {
      faults.push(`${name} came with ${field.name}, which Connection named`);
    }
  }
  return [...faults, ...judgeFields(forwarded, name)];
}

/** The host that a client addresses, without an empty port, and the target that the backend must receive (RFC 9112 §3.2.2). */
export function addressed({ target, fields }: ReadRequest): { host: string | undefined; target: string } {
  const absolute = /^https?:\/\/([^/?#]*)(.*)$/is.exec(target);
  const host = (absolute?.[1] ?? onlyValue(fields, 'host'))?.replace(/:$/, '');
  return { host, target: absolute === null ? target : (absolute[2] ?? '').replace(/^(?!\/)/, '/') };
}

/** The path with decoded letters, digits, `-`, `.`, `_` and `~`. */
function plain(path: string): string {
  return path.replaceAll(/%[0-9a-f]{2}/gi, (escaped) => {
    const character = String.fromCharCode(Number.parseInt(escaped.slice(1), 16));
    return /[\w\-.~]/.test(character) ? character : escaped;
  });
}

/**
 * Whether the gateway may forward this request and then cut it off, because the body stops or is too large. The result is true even for an
 * empty chunked body, because its last chunk may not arrive.
 */
export function mayBeCut({ body, fields }: ReadRequest): boolean {
  return body !== '' || valuesOf(fields, 'transfer-encoding').length > 0;
}

/** The key to which the request's only `Authorization` field belongs. */
export function presentedKey({ fields }: ReadRequest): string | undefined {
  const credentials = onlyValue(fields, 'authorization') ?? '';
  return keyIdBySecret.get(/^bearer +(\S+)$/i.exec(credentials)?.[1] ?? '');
}

function judgeFields({ fields }: ReadRequest, name: string): string[] {
  const faults: string[] = [];
  const own = new Map<string, string>();
  for (const field of fields) {
    const folded = field.name.replaceAll(/[^a-z0-9]/g, '-');
    if (endsAtGateway.test(folded)) faults.push(`${name} came with ${field.name}: ${field.value}`);
    if (!ownField.test(folded)) continue;
    if (folded !== field.name) faults.push(`${name} came with the disguised field ${field.name}`);
    if (own.has(folded)) faults.push(`${name} came with two fields ${folded}`);
    if (field.value.includes(forgery)) faults.push(`${name} came with the forged ${folded}: ${field.value}`);
    own.set(folded, field.value);
  }
  for (const expected of [
    'host',
    'x-request-id',
    'x-key-id',
    'x-plan',
    'x-forwarded-for',
    'x-forwarded-proto',
  ]) {
    if (!own.has(expected)) faults.push(`${name} came without ${expected}`);
  }
  const options = listOf(fields, 'connection').filter(
    (option) => option !== 'keep-alive' && option !== 'close',
  );
  if (options.length > 0) faults.push(`${name} came with Connection: ${options}`);
  if (!valuesOf(fields, 'via').some((via) => via.includes('tollgate')))
    faults.push(`${name} came without Via`);
  return faults;
}
