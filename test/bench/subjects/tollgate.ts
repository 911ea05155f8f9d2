import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../support/free-port.ts';
import type { Credential } from '../credentials.ts';
import { startProcess, untilAnswers } from '../processes.ts';
import type { Stage, StartedSubject, Subject } from './subject.ts';

const ownMain = fileURLToPath(new URL('../../../gateway/main.ts', import.meta.url));
/** The path of the entry point in every checkout. */
const mainIn = (checkout: string) => resolve(checkout, 'gateway/main.ts');
const openapi = fileURLToPath(new URL('../../../config/openapi.yaml', import.meta.url));

/** Tollgate with all default settings and its access log in a file. */
export const tollgate: Subject = {
  name: 'tollgate',
  job: 'key, both windows in Redis, all headers, access line, forward',
  identifies: true,
  limits: true,
  missing: () => undefined,
  start: (stage) => startTollgate(stage),
};

/**
 * The Tollgate of another checkout, with the same settings. The comparison of both checkouts shows the cost of a change.
 *
 * @param checkout a folder with installed packages
 */
export const tollgateBefore = (checkout: string): Subject => ({
  ...tollgate,
  name: 'before',
  job: `tollgate in ${checkout}`,
  missing: () =>
    existsSync(mainIn(checkout)) ? undefined : `${mainIn(checkout)} does not exist; check out a commit there`,
  start: (stage) => startTollgate(stage, { name: 'before', main: mainIn(checkout) }),
});

export interface StartedTollgate extends StartedSubject {
  readonly adminOrigin: string;
  readonly keysFile: string;
}

interface StartOptions {
  readonly name?: string;
  /** The entry point. */
  readonly main?: string;
  /** For example `--cpu-prof`. */
  readonly nodeOptions?: string[];
  readonly apiFile?: string;
  /** Further settings, YAML. */
  readonly settings?: string;
  /** Further members of `admin`, such as `, tokens: […]`. */
  readonly adminMembers?: string;
  /**
   * Replacement lines (YAML). The key of an entry is the name at the start of a configuration line. The value of the entry replaces this
   * line.
   */
  readonly replaced?: Readonly<Record<string, string>>;
}

export async function startTollgate(
  { dir, backendPort, redisPort, credentials, subjectCpus, tls }: Stage,
  {
    name = 'tollgate',
    main = ownMain,
    nodeOptions = [],
    apiFile = openapi,
    settings = '',
    adminMembers = '',
    replaced = {},
  }: StartOptions = {},
): Promise<StartedTollgate> {
  const home = join(dir, name);
  mkdirSync(home, { recursive: true });
  const [port, adminPort] = [await freePort(), await freePort()];
  const configFile = join(home, 'bench.yaml');
  const keysFile = join(home, 'keys.yaml');
  copyFileSync(apiFile, join(home, 'openapi.yaml'));
  writeFileSync(keysFile, keysYaml(credentials.all));
  const shared = configYaml({ port, adminPort, backendPort, redisPort, name, tls, adminMembers });
  writeFileSync(configFile, `${replaceLines(shared, replaced)}${settings}\n`);

  const args = [...nodeOptions, main, '--config', configFile];
  const running = startProcess(process.execPath, args, { dir: home, name: 'access', cpus: subjectCpus });
  // If the gateway serves TLS, it responds to this cleartext request with 400.
  await untilAnswers(`http://127.0.0.1:${port}/v1/pets`, running);
  const origin = `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`;
  return { ...running, origin, adminOrigin: `http://127.0.0.1:${adminPort}`, keysFile };
}

function replaceLines(yaml: string, lines: Readonly<Record<string, string>>): string {
  return Object.entries(lines).reduce(
    (text, [word, line]) => text.replace(new RegExp(`^${word}:.*$`, 'm'), () => line),
    yaml,
  );
}

interface ConfigParts {
  readonly port: number;
  readonly adminPort: number;
  readonly backendPort: number;
  readonly redisPort: number;
  readonly name: string;
  readonly tls: Stage['tls'];
  readonly adminMembers: string;
}

function configYaml({
  port,
  adminPort,
  backendPort,
  redisPort,
  name,
  tls,
  adminMembers,
}: ConfigParts): string {
  const tlsPart = tls === undefined ? '' : `, tls: { cert: ${tls.cert}, key: ${tls.key} }`;
  return `
environment: bench
baseUrl: http://127.0.0.1:${port}/v1
listen: { host: 127.0.0.1, port: ${port}${tlsPart} }
admin: { host: 127.0.0.1, port: ${adminPort}${adminMembers} }
upstream: { url: "http://127.0.0.1:${backendPort}", health: /healthz }
plans:
  free: { perMinute: 60, perDay: 1000 }
  pro: { perMinute: 300, perDay: 10000 }
  business: { perMinute: 1000, perDay: 100000 }
  enterprise: custom
redis: { url: "redis://127.0.0.1:${redisPort}", prefix: ${name}, onFailure: local }
keys: ./keys.yaml
api: ./openapi.yaml
`;
}

/** @param label becomes the name of one key, so another label is an edit of that key */
export function keysYaml(credentials: readonly Credential[], label = 'benchmark'): string {
  return credentials
    .map(
      ({ id, sha256, limits }, index) => `- id: ${id}
  plan: enterprise
  name: ${index === Math.floor(credentials.length / 2) ? label : 'benchmark'}
  limits: { perMinute: ${limits.perMinute}, perDay: ${limits.perDay} }
  secrets:
    - sha256: ${sha256}
`,
    )
    .join('');
}

/**
 * The number of requests that the gateway decided without Redis, because Redis did not reply in time. If this number is large, the run does
 * not show the cost of decisions with Redis.
 */
export function countDecidedLocally({ logFile }: StartedSubject): number {
  return Number(spawnSync('grep', ['-c', '"source":"local"', logFile], { encoding: 'utf8' }).stdout);
}
