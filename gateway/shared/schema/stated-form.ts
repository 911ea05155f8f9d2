import * as z from 'zod';
import { digestStart } from '../secrets.ts';
import { isMapping } from '../structures/plain-data.ts';
import { isMasked, type Mark, marks, partsOf } from './marks.ts';

/** The beginning of a digest is shown in place of the member `sha256`. */
export function shownName(name: string): string {
  return name === 'sha256' ? 'digestStart' : name;
}

/**
 * The parsed value as a configuration states it, without secrets. Durations are texts such as `1m`, marked values are masked, and a digest
 * is cut to its first digits.
 */
export function statedForm(schema: z.ZodType, value: unknown): unknown {
  if (value === undefined) return undefined;
  const mark = marks.get(schema);
  if (mark !== undefined && isMasked(mark)) return maskValue(mark, value);
  if (schema instanceof z.ZodCodec) return schema.encode(value as never);
  const parts = partsOf(schema);
  switch (parts.kind) {
    case 'members':
      if (!isMapping(value)) return value;
      return Object.fromEntries(
        Object.entries(parts.of)
          .filter(([name]) => value[name] !== undefined)
          .map(([name, member]) => [shownName(name), statedForm(member, value[name])]),
      );
    case 'entries':
      if (Array.isArray(value)) return value.map((entry) => statedForm(parts.of, entry));
      if (!isMapping(value)) return value;
      return Object.fromEntries(
        Object.entries(value).map(([name, entry]) => [name, statedForm(parts.of, entry)]),
      );
    case 'options':
      return parts.of.reduce<unknown>((shown, option) => statedForm(option, shown), value);
    case 'inner':
      return statedForm(parts.of, value);
    case 'leaf':
      return value;
  }
}

const masked = '***';

function maskValue({ secret, secretInUrl }: Mark, value: unknown): unknown {
  if (typeof value !== 'string') return masked;
  if (secret === 'digest') return digestStart(value);
  if (secret === true) return masked;
  return secretInUrl === 'path' ? maskPath(value) : maskCredentials(value);
}

/**
 * Masks the user information, and the values of query parameters such as `redis://redis?password=…`. A text that is not a URL is masked as
 * a whole.
 */
function maskCredentials(text: string): string {
  const url = URL.parse(text);
  if (url === null) return masked;
  const user = url.username !== '' || url.password !== '' ? `${masked}@` : '';
  const parameters = [...url.searchParams.keys()].map((name) => `${name}=${masked}`).join('&');
  return `${url.protocol}//${user}${url.host}${url.pathname}${parameters && `?${parameters}`}`;
}

/** Masks everything after the origin of a URL. The path of a webhook's URL often contains a token. */
function maskPath(text: string): string {
  const url = URL.parse(text);
  if (url === null) return masked;
  const isBare = url.pathname === '/' && url.search === '';
  return `${url.origin}/${isBare ? '' : masked}`;
}
