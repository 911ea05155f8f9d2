import ipaddr from 'ipaddr.js';

/**
 * What counts as one client address: an IPv4 address, also when written as IPv4-mapped IPv6, or the /64 of an IPv6
 * address, which is what one subscriber is given (RFC 6177). What is no address counts as itself.
 */
export function addressGroup(address: string): string {
  if (!address.includes(':') || !ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  if (parsed.kind() === 'ipv4') return parsed.toString();
  const network = parsed.toByteArray().fill(0, 8);
  return `${ipaddr.fromByteArray(network).toString()}/64`;
}
