import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { bareHostname } from '../../../shared/addresses/address-group.ts';

/** Resolves a host name to its IPv4 and IPv6 addresses. Rejects when the lookup fails. */
export type ResolveTargets = (hostname: string) => Promise<readonly string[]>;

/** Uses the system's resolver, which reads hosts files and resolves names of Docker and Kubernetes. */
export const resolveTargets: ResolveTargets = async (hostname) => {
  const found = await lookup(hostname, { all: true });
  return found.map(({ address }) => address);
};

/** Returns address and port for a URL. An IPv6 address gets brackets. */
export function hostAndPort(address: string, port: string): string {
  return isIP(address) === 6 ? `[${address}]:${port}` : `${address}:${port}`;
}

export function targetOf(url: string): { protocol: string; hostname: string; port: string } {
  const parsed = new URL(url);
  const { protocol } = parsed;
  return {
    protocol,
    hostname: bareHostname(parsed),
    port: parsed.port || (protocol === 'https:' ? '443' : '80'),
  };
}
