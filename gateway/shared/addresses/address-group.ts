import ipaddr from 'ipaddr.js';

/**
 * The group of addresses that counts as one client: an IPv4 address, also in IPv4-mapped form, or the /64 network of an IPv6 address. A
 * host may choose any of the 2^64 interface identifiers of its network (RFC 4291 §2.5.1). A text that is not an address forms a group of
 * its own.
 */
export function addressGroup(address: string): string {
  const plain = plainAddress(address);
  if (!plain.includes(':') || !ipaddr.isValid(plain)) return plain;
  const parsed = ipaddr.process(plain);
  if (parsed.kind() === 'ipv4') return parsed.toString();
  const network = parsed.toByteArray().fill(0, 8);
  return `${ipaddr.fromByteArray(network).toString()}/64`;
}

/**
 * Converts an IPv4-mapped IPv6 address (::ffff:192.0.2.1), which a dual-stack listener reports, to its IPv4 address (RFC 4291 §2.5.5.2).
 */
export function plainAddress(address: string): string {
  const isMapped = address.startsWith(mappedPrefix) && address.includes('.');
  return isMapped ? address.slice(mappedPrefix.length) : address;
}

const mappedPrefix = '::ffff:';

/** Without the brackets of an IPv6 address. */
export function bareHostname({ hostname }: Pick<URL, 'hostname'>): string {
  return hostname.replace(/^\[|\]$/g, '');
}
