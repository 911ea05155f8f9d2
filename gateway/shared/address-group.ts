import ipaddr from 'ipaddr.js';

/**
 * What counts as one client address: an IPv4 address, also when written as IPv4-mapped IPv6, or the /64 of an IPv6
 * address, since a host may choose any of the 2^64 interface identifiers of its network (RFC 4291 §2.5.1). A text that is
 * no address counts as itself.
 */
export function addressGroup(address: string): string {
  const plain = plainAddress(address);
  if (!plain.includes(':') || !ipaddr.isValid(plain)) return plain;
  const parsed = ipaddr.process(plain);
  if (parsed.kind() === 'ipv4') return parsed.toString();
  const network = parsed.toByteArray().fill(0, 8);
  return `${ipaddr.fromByteArray(network).toString()}/64`;
}

/** An IPv4 peer of a dual-stack listener reads `::ffff:192.0.2.1` (RFC 4291 §2.5.5.2); it is the IPv4 address. */
export function plainAddress(address: string): string {
  const isMapped = address.startsWith(mappedPrefix) && address.includes('.');
  return isMapped ? address.slice(mappedPrefix.length) : address;
}

const mappedPrefix = '::ffff:';
