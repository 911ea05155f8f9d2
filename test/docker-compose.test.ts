import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

interface Service {
  readonly image?: string;
  readonly profiles?: readonly string[];
  readonly networks?: readonly string[];
  readonly mem_limit?: string;
  readonly pids_limit?: number;
  readonly ports?: readonly string[];
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly volumes?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly logging?: { readonly options: Readonly<Record<string, string>> };
}

interface ComposeFile {
  readonly 'x-hardened': object;
  readonly services: Readonly<Record<string, Service>>;
  readonly networks: Readonly<Record<string, { readonly internal?: boolean } | null>>;
  readonly volumes?: Readonly<Record<string, unknown>>;
}

function read(file: string): ComposeFile {
  const reset = { tag: '!reset', collection: 'seq' as const, resolve: () => [] };
  return parse(readFileSync(file, 'utf8'), { merge: true, customTags: [reset] });
}

const production = read('docker-compose.yml');
const staging = read('config/tollgate-staging/docker-compose.yml');
const balanced = read('config/balanced.compose.yml');

const namesOf = (part: object | undefined) => Object.keys(part ?? {});

/** A service without its name, network, environment and other members that differ between services. */
function bare({ image, ports, networks, environment, volumes, ...service }: Service) {
  const {
    build,
    depends_on: dependsOn,
    scale: _,
    ...rest
  } = service as Record<string, Record<string, unknown>>;
  const targets = volumes?.map((volume) => volume.slice(volume.indexOf(':')));
  return {
    ...rest,
    targets,
    target: build?.target,
    image: image?.replace('tollgate-staging-', 'tollgate-'),
    waitsFor: namesOf(dependsOn).map((name) => name.replace('-staging', '')),
  };
}

/** These tests check the Compose files. The behaviour of Docker with these files was checked by hand. */
describe.each([
  ['production', production, ''],
  ['staging', staging, '-staging'],
])('%s', (_, { services, networks }, suffix) => {
  const [gateway, backend, redis] = [`gateway${suffix}`, `backend${suffix}`, `redis${suffix}`];
  const networksOf = (name: string) => services[name]?.networks ?? [];

  it.each(namesOf(services))('%s is bounded, and has no secret in its command', (name) => {
    const { mem_limit, pids_limit, logging, entrypoint = [], command = [] } = services[name] ?? {};
    expect(mem_limit).toMatch(/^\d+[mg]$/);
    expect(pids_limit).toBeGreaterThan(0);
    expect(logging?.options).toEqual({ 'max-size': '50m', 'max-file': '10' });
    // Compose substitutes `$`, and passes `$$` as `$` to the shell in the container.
    expect([...entrypoint, ...command].join(' ')).not.toMatch(/(?<!\$)\$(?!\$)|--requirepass/);
  });

  it('only the gateway and Prometheus publish ports, and only the port for clients is open to other hosts', () => {
    expect(services[gateway]?.ports).toEqual([
      expect.stringMatching(/^\$\{\w+:-80\d\d\}:8080$/),
      expect.stringMatching(/^127\.0\.0\.1:\$\{\w+:-90\d\d\}:9090$/),
    ]);
    const others = Object.entries(services).filter(([name]) => name !== gateway && name !== 'prometheus');
    expect(others.filter(([, { ports }]) => ports !== undefined)).toEqual([]);
    for (const port of services.prometheus?.ports ?? []) expect(port).toMatch(/^127\.0\.0\.1:/);
  });

  it('backend and Redis are each on an internal network with only the gateway and cli', () => {
    for (const name of [backend, redis]) {
      const [network = '', ...rest] = networksOf(name);
      expect(rest).toEqual([]);
      expect(networks[network]).toEqual({ internal: true });
      const onIt = namesOf(services).filter((other) => networksOf(other).includes(network));
      expect(onIt.sort()).toEqual([name, 'cli', gateway].sort());
    }
  });

  it('cli has the image, environment and networks of the gateway, no port, and the address of the admin API', () => {
    const { image, environment: all, networks, ports } = services.cli ?? {};
    const { TOLLGATE_ADMIN, TOLLGATE_ADMIN_TOKEN, ...environment } = all ?? {};
    const ofGateway = services[gateway];
    const { admin } = parse(readFileSync(`${all?.TOLLGATE_CONFIG}`, 'utf8'));
    expect(TOLLGATE_ADMIN).toBe(`http://${admin.hosts[0]}:9090`);
    expect(admin.hosts[0]).toBe(gateway);
    expect(TOLLGATE_ADMIN_TOKEN).toMatch(/^\$\{\w+:-\}$/);
    expect({ image, environment, networks }).toEqual({
      image: ofGateway?.image,
      environment: ofGateway?.environment,
      networks: ofGateway?.networks,
    });
    expect(ports).toBeUndefined();
    // One entry point runs the gateway and the other entry point runs the command line. Both entry points begin with the same words.
    expect(services.cli?.entrypoint?.slice(0, -1)).toEqual(ofGateway?.entrypoint?.slice(0, -1));
  });
});

describe('production and staging', () => {
  it('share no built image, service, network or volume', () => {
    const builtImages = ({ services }: ComposeFile) =>
      Object.values(services).flatMap(({ image = '' }) => (image.startsWith('tollgate-') ? [image] : []));
    const partsOf = (file: ComposeFile) => [
      ...builtImages(file),
      // `cli` is not a permanent service: each command runs in its own container.
      ...namesOf(file.services).filter((name) => name !== 'cli'),
      ...namesOf(file.networks),
      ...namesOf(file.volumes),
    ];
    const ofProduction = new Set([...partsOf(production), ...partsOf(balanced)]);
    expect(partsOf(staging).filter((name) => ofProduction.has(name))).toEqual([]);
    expect(partsOf(staging)).toContain('tollgate-staging-gateway');
  });

  it('share no variable', () => {
    const variablesOf = (file: string) =>
      [...readFileSync(file, 'utf8').matchAll(/(?<!\$)\$\{(\w+)/g)].map(([, name]) => name);
    const ofStaging = variablesOf('config/tollgate-staging/docker-compose.yml');
    expect(ofStaging).toContain('STAGING_PORT');
    expect(ofStaging.filter((name) => !name?.startsWith('STAGING_'))).toEqual([]);
    expect(variablesOf('docker-compose.yml').filter((name) => name?.startsWith('STAGING_'))).toEqual([]);
  });

  it('have the same services, except for names, ports and variables', () => {
    const { prometheus: _, ...services } = production.services;
    const named = Object.entries(services).map(([name, service]) => [
      name === 'cli' ? name : `${name}-staging`,
      bare(service),
    ]);
    const ofStaging = Object.entries(staging.services).map(([name, service]) => [name, bare(service)]);
    expect(ofStaging).toEqual(named);
  });
});

describe('Prometheus', () => {
  const { gateway, prometheus } = production.services;

  it('starts only with its profile, and keeps its data in a volume with a limit', () => {
    expect(prometheus?.profiles).toEqual(['observe']);
    expect(namesOf(production.volumes)).toContain('prometheus-data');
    expect(prometheus?.volumes).toContain('prometheus-data:/prometheus');
    expect(prometheus?.command).toEqual(
      expect.arrayContaining([
        '--storage.tsdb.path=/prometheus',
        expect.stringMatching(/retention\.time=\d+d$/),
        expect.stringMatching(/retention\.size=\d+GB$/),
      ]),
    );
  });

  it('finds every gateway once, by the name of the service, on one common network', () => {
    const { scrape_configs: jobs } = parse(readFileSync('config/observe/prometheus.yml', 'utf8'));
    const adminPort = Number(gateway?.ports?.[1]?.split(':').at(-1));
    expect(jobs[0].dns_sd_configs).toEqual([
      expect.objectContaining({ names: ['gateway'], type: 'A', port: adminPort }),
    ]);
    // The networks of a gateway behind the load balancer. Compose adds the networks of the second file to the networks of the first file.
    const ofGateways = [...(gateway?.networks ?? []), ...(balanced.services.gateway?.networks ?? [])];
    expect(prometheus?.networks?.filter((name) => ofGateways.includes(name))).toHaveLength(1);
  });

  it('reads the files of config/observe', () => {
    expect(prometheus?.volumes).toContain('./config/observe:/etc/prometheus:ro');
    expect(prometheus?.command).toContain('--config.file=/etc/prometheus/prometheus.yml');
  });
});

describe('config/balanced.compose.yml', () => {
  const { gateway, cli, balancer } = balanced.services;

  it('gives the balancer the bounds and rights of every container', () => {
    expect(balancer).toMatchObject(production['x-hardened']);
  });

  it('publishes the ports of the balancer instead of those of the gateways', () => {
    expect(gateway?.ports).toEqual([]);
    expect(balancer?.ports).toEqual(production.services.gateway?.ports);
  });

  it('gives gateways and balancer one common network, and cli the environment of the gateways', () => {
    const ofGateways = [...(production.services.gateway?.networks ?? []), ...(gateway?.networks ?? [])];
    // The load balancer would find a gateway twice if they shared two networks.
    expect(balancer?.networks?.filter((name) => ofGateways.includes(name))).toEqual(gateway?.networks);
    expect(cli?.environment).toEqual(gateway?.environment);
  });
});
