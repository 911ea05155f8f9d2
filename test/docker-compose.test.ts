import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

interface Service {
  readonly networks?: readonly string[];
  readonly network_mode?: string;
  readonly mem_limit?: string;
  readonly pids_limit?: number;
  readonly ports?: readonly string[];
  readonly command?: readonly string[];
}

interface ComposeFile {
  readonly services: Readonly<Record<string, Service>>;
  readonly networks: Readonly<Record<string, { readonly internal?: boolean } | null>>;
}

const { services, networks }: ComposeFile = parse(
  readFileSync(new URL('../docker-compose.yml', import.meta.url), 'utf8'),
  { merge: true },
);
const networksOf = (name: string) => services[name]?.networks ?? [];
const isGateway = (name: string) => name.startsWith('gateway');

/** What is written in the file; that Docker obeys it was seen by hand. */
describe('docker-compose.yml', () => {
  it.each(Object.keys(services))(
    '%s has limits of memory and processes, and no secret in its command',
    (name) => {
      const { mem_limit, pids_limit, command = [] } = services[name] ?? {};
      expect(mem_limit).toMatch(/^\d+[mg]$/);
      expect(pids_limit).toBeGreaterThan(0);
      // `$$` is left to the shell in the container, `$` would be filled in by Compose.
      expect(command.join(' ')).not.toMatch(/(?<!\$)\$(?!\$)|--requirepass/);
    },
  );

  it('only the gateways meet anybody, publish a port and reach out', () => {
    for (const [name, { network_mode, ports }] of Object.entries(services)) {
      if (isGateway(name)) continue;
      expect(ports, name).toBeUndefined();
      if (network_mode === 'none') continue;
      expect(networksOf(name), name).toHaveLength(1);
      for (const network of networksOf(name)) {
        expect(networks[network], network).toEqual({ internal: true });
        const others = Object.keys(services).filter((other) => networksOf(other).includes(network));
        expect(
          others.filter((other) => other !== name && !isGateway(other)),
          network,
        ).toEqual([]);
      }
    }
  });

  it('each gateway reaches its backend and Redis, and no backend of another', () => {
    expect(networksOf('gateway')).toEqual(['edge', ...networksOf('backend'), ...networksOf('redis')]);
    expect(networksOf('gateway-staging')).toEqual([
      'edge',
      ...networksOf('backend-staging'),
      ...networksOf('redis'),
    ]);
  });
});
