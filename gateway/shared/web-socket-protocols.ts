import { withoutOptionalWhitespace } from './optional-whitespace.ts';

/**
 * The subprotocols (RFC 6455 §1.9) by which a page in a browser presents a secret: it cannot set `Authorization` on a
 * WebSocket. The page offers `tollgate`, and `tollgate.bearer.` with the secret behind it. Both are for the gateway alone.
 */
export const tollgateProtocol = 'tollgate';
const bearerProtocol = 'tollgate.bearer.';

/** The field that offers subprotocols, and selects one, by its lower-case name. */
export const protocolField = 'sec-websocket-protocol';

/**
 * The subprotocols that all lines of the field offer together (RFC 9110 §5.3).
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

/** The line that the backend reads: without the gateway's subprotocols, the others in their order; empty when there are none. */
export function withoutOwnProtocols(value: string): string {
  const protocols = protocolsOf(value);
  const others = protocols.filter((protocol) => protocol !== tollgateProtocol && !presentsSecret(protocol));
  return others.length === protocols.length ? value : others.join(', ');
}

/** In any case: a secret behind a prefix in another case must not reach the backend either. */
function presentsSecret(protocol: string): boolean {
  return protocol.slice(0, bearerProtocol.length).toLowerCase() === bearerProtocol;
}

function protocolsOf(value: string): string[] {
  return value.split(',').map((protocol) => withoutOptionalWhitespace(protocol));
}
