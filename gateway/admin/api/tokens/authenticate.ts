import { hash, timingSafeEqual } from 'node:crypto';
import { withoutOptionalWhitespace } from '../../../shared/http/field-grammar.ts';
import type { AdminToken } from '../../../shared/model.ts';

export type Authenticated =
  | { readonly kind: 'authenticated'; readonly token: AdminToken }
  | { readonly kind: 'missing' }
  | { readonly kind: 'wrong' };

/**
 * Finds the token that an `Authorization` field presents. The function compares all digests in constant time, so the
 * duration of a response reveals nothing about a token.
 */
export function authenticate(
  authorization: string | undefined,
  tokens: readonly AdminToken[],
): Authenticated {
  const presented = authorization === undefined ? undefined : bearerToken(authorization);
  if (presented === undefined) return { kind: 'missing' };
  // Node decodes header fields as Latin-1, so encoding as Latin-1 restores the bytes that the client sent.
  const digest = hash('sha256', Buffer.from(presented, 'latin1'), 'buffer');
  const found = tokens.filter(({ sha256 }) => timingSafeEqual(digest, Buffer.from(sha256, 'hex')));
  return found[0] === undefined ? { kind: 'wrong' } : { kind: 'authenticated', token: found[0] };
}

/** Returns the name of the token that an `Authorization` field presents; undefined without a valid token. */
export function tokenNameOf(
  authorization: string | undefined,
  tokens: readonly AdminToken[],
): string | undefined {
  const authenticated = authenticate(authorization, tokens);
  return authenticated.kind === 'authenticated' ? authenticated.token.name : undefined;
}

/** The credentials of a `Bearer` field; the scheme is case-insensitive (RFC 9110 §11.1). */
function bearerToken(authorization: string): string | undefined {
  if (authorization.slice(0, bearer.length).toLowerCase() !== bearer) return undefined;
  const token = withoutOptionalWhitespace(authorization.slice(bearer.length));
  return token === '' ? undefined : token;
}

const bearer = 'bearer ';
