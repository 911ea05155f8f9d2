import { isIP } from 'node:net';
import { plainAddress } from '../../shared/addresses/address-group.ts';
import { type AddressRanges, hasAddress } from '../../shared/addresses/address-ranges.ts';
import { withoutOptionalWhitespace } from '../../shared/http/field-grammar.ts';

/** The client's address, and the values of the `X-Forwarded-*` fields that the gateway sends to the upstream. */
export interface ClientOrigin {
  /** The client's address: the peer's address, or the first address behind trusted proxies. */
  readonly address: string;
  /** Whether the peer is a trusted proxy. The gateway forwards the `Forwarded` field only from a trusted proxy. */
  readonly trustedPeer: boolean;
  readonly forwardedFor: string;
  /** The value of a trusted proxy; undefined if the client's own host is forwarded. */
  readonly forwardedHost: string | undefined;
  readonly forwardedProto: string;
  /** The entry of `X-Forwarded-For` that should have been the client's address, but is no address. */
  readonly unreadEntry?: UnreadEntry | undefined;
}

interface UnreadEntry {
  readonly entry: string;
  /** The trusted proxy that wrote the entry. */
  readonly proxy: string;
}

/** The request data that determines the client's address and the `X-Forwarded-*` fields. */
export interface OriginFields {
  readonly peerAddress: string;
  /** The protocol between the peer and the gateway. */
  readonly proto: 'http' | 'https';
  readonly xForwardedFor: string | undefined;
  readonly xForwardedHost: string | undefined;
  readonly xForwardedProto: string | undefined;
}

/**
 * Finds the client's address. `X-Forwarded-*` fields count only if the peer is a trusted proxy. The addresses in `X-Forwarded-For` are read
 * from right to left. The first address that is not a trusted proxy is the client's address. The client may have forged the addresses to
 * the left of its own.
 */
export function clientOrigin(fields: OriginFields, trusted: AddressRanges | undefined): ClientOrigin {
  const peer = plainAddress(fields.peerAddress);
  if (trusted === undefined || !hasAddress(trusted, peer)) {
    return {
      address: peer,
      trustedPeer: false,
      forwardedFor: peer,
      forwardedHost: undefined,
      forwardedProto: fields.proto,
    };
  }
  return {
    ...firstUntrusted(peer, fields.xForwardedFor ?? '', trusted),
    trustedPeer: true,
    forwardedFor: fields.xForwardedFor ? `${fields.xForwardedFor}, ${peer}` : peer,
    forwardedHost: fields.xForwardedHost,
    forwardedProto: fields.xForwardedProto ?? fields.proto,
  };
}

/**
 * Returns the first untrusted address of `X-Forwarded-For`, read from the right. A malformed entry ends the search, because the client
 * may have forged the addresses to its left. Empty entries are ignored (RFC 9110 §5.6.1.2).
 */
function firstUntrusted(
  peer: string,
  forwardedFor: string,
  trusted: AddressRanges,
): Pick<ClientOrigin, 'address' | 'unreadEntry'> {
  let nearest = peer;
  for (const written of forwardedFor.split(',').toReversed()) {
    const entry = withoutOptionalWhitespace(written);
    if (entry === '') continue;
    const address = addressIn(entry);
    if (address === undefined) return { address: nearest, unreadEntry: { entry, proxy: nearest } };
    nearest = address;
    if (!hasAddress(trusted, address)) return { address };
  }
  return { address: nearest };
}

/** Reads an entry of `X-Forwarded-For`. Some proxies write `203.0.113.7:51234`, `[2001:db8::1]` or `[2001:db8::1]:4711`. */
function addressIn(entry: string): string | undefined {
  const plain = plainAddress(entry);
  if (isIP(plain) !== 0) return plain;
  const [, inBrackets, beforePort] = addressForm.exec(entry) ?? [];
  const address = plainAddress(inBrackets ?? beforePort ?? '');
  return isIP(address) === 0 ? undefined : address;
}

const addressForm = /^(?:\[([^\]]*)\](?::\d{1,5})?|([\d.]+):\d{1,5})$/;
