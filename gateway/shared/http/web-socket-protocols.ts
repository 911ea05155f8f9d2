import { withoutOptionalWhitespace } from './field-grammar.ts';

/**
 * Browsers do not let a page set `Authorization` on a WebSocket. A page therefore offers two subprotocols (RFC 6455 §1.9): `tollgate`, and
 * `tollgate.bearer.` followed by the secret. The gateway removes both from the request to the backend.
 */
export const tollgateProtocol = 'tollgate';
const bearerProtocol = 'tollgate.bearer.';

export const protocolField = 'sec-websocket-protocol';

/** From all lines of the field (RFC 9110 §5.3). @param fields flat: name, value, … */
export function offeredProtocols(fields: readonly string[]): string[] {
  return fields.flatMap((name, i) =>
    i % 2 === 0 && name.toLowerCase() === protocolField ? protocolsOf(fields[i + 1] ?? '') : [],
  );
}

export function secretsOffered(protocols: readonly string[]): string[] {
  return protocols.filter(presentsSecret).map((protocol) => protocol.slice(bearerProtocol.length));
}

/** The value of the field for the backend, in the same order; empty when no subprotocols remain. */
export function withoutOwnProtocols(value: string): string {
  const protocols = protocolsOf(value);
  const others = protocols.filter((protocol) => protocol !== tollgateProtocol && !presentsSecret(protocol));
  return others.length === protocols.length ? value : others.join(', ');
}

/** The prefix matches in any letter case, so that the backend never gets a secret. */
function presentsSecret(protocol: string): boolean {
  return protocol.slice(0, bearerProtocol.length).toLowerCase() === bearerProtocol;
}

function protocolsOf(value: string): string[] {
  return value.split(',').map((protocol) => withoutOptionalWhitespace(protocol));
}
