import { withoutOptionalWhitespace } from './optional-whitespace.ts';

/**
 * The subprotocols (RFC 6455 §1.9) with which a page in a browser presents a secret. Browsers do not let a page set `Authorization` on a
 * WebSocket. The page offers two subprotocols: `tollgate`, and `tollgate.bearer.` followed by the secret. The gateway removes both
 * subprotocols from the request to the backend.
 */
export const tollgateProtocol = 'tollgate';
const bearerProtocol = 'tollgate.bearer.';

/** The lower-case name of the field in which a client offers subprotocols and a server selects a subprotocol. */
export const protocolField = 'sec-websocket-protocol';

/**
 * The offered subprotocols in all lines of the `Sec-WebSocket-Protocol` field (RFC 9110 §5.3).
 *
 * @param fields flat name, value, …
 */
export function offeredProtocols(fields: readonly string[]): string[] {
  return fields.flatMap((name, i) =>
    i % 2 === 0 && name.toLowerCase() === protocolField ? protocolsOf(fields[i + 1] ?? '') : [],
  );
}

/** The secrets among offered subprotocols. */
export function secretsOffered(protocols: readonly string[]): string[] {
  return protocols.filter(presentsSecret).map((protocol) => protocol.slice(bearerProtocol.length));
}

/**
 * The value of the field for the backend: the offered subprotocols in the same order, without the gateway's own subprotocols. The value is
 * empty when no subprotocols remain.
 */
export function withoutOwnProtocols(value: string): string {
  const protocols = protocolsOf(value);
  const others = protocols.filter((protocol) => protocol !== tollgateProtocol && !presentsSecret(protocol));
  return others.length === protocols.length ? value : others.join(', ');
}

/** The prefix matches in any letter case, so that no secret reaches the backend. */
function presentsSecret(protocol: string): boolean {
  return protocol.slice(0, bearerProtocol.length).toLowerCase() === bearerProtocol;
}

function protocolsOf(value: string): string[] {
  return value.split(',').map((protocol) => withoutOptionalWhitespace(protocol));
}
