import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { parse } from 'yaml';
import { loadSettings } from '../../config/load-settings.ts';
import { formatProblems } from '../../config/problems/format-problems.ts';
import { checkConnection } from '../../request/forward/upstream/check-health.ts';
import { targetOf } from '../../request/forward/upstream/resolve-targets.ts';
import { isGone } from '../../request/route/operation-table.ts';
import { anyMethod, type Operation } from '../../shared/model.ts';
import { digestSecret, issueAdminToken, issueSecret } from '../../shared/secrets.ts';
import { isMapping } from '../../shared/structures/plain-data.ts';
import { printable } from '../../shared/terminal/printable.ts';
import { defaultBounds } from '../../shared/timeouts-and-sizes.ts';
import { configName, fromHere } from '../command.ts';
import { CommandError } from '../output/command-error.ts';
import { configText, type NewConfig, portsIn } from './new-config.ts';

const firstKey = 'first';

export interface InitOptions {
  readonly upstream: string;
  /** The path of an OpenAPI document. */
  readonly api?: string;
  readonly dir: string;
}

export async function init(options: InitOptions): Promise<void> {
  for (const line of await initConfig(options)) console.log(printable(line));
}

/**
 * Writes a configuration for a service, with a first key. Returns the lines that tell the operator what to do next. An existing file is not
 * overwritten.
 */
async function initConfig({ upstream, api, dir }: InitOptions): Promise<readonly string[]> {
  if (!isOrigin(upstream)) {
    const origin = originIn(upstream);
    throw new CommandError(
      `--upstream must be an http or https URL without a path, such as ${origin ?? 'http://localhost:3000'}. Nothing was written.`,
    );
  }
  const file = join(dir, configName);
  if (existsSync(file)) throw new CommandError(`${fromHere(file)} exists already. Nothing was written.`);
  const ports = portsIn(process.env);
  const secret = issueSecret();
  const token = issueAdminToken();
  const basePath = api === undefined ? '' : basePathOf(api);
  const { text, warnings, operations } = validText(file, {
    upstream,
    api: api === undefined ? undefined : besideConfig(dir, api),
    basePath,
    adminTokenSha256: digestSecret(token),
    key: { id: firstKey, sha256: digestSecret(secret) },
  });
  writeNew(file, text);
  return [
    `Wrote ${fromHere(file)}, with the key \`${firstKey}\` on the plan free: 60 requests a minute.`,
    ...warnings.map((warning) => `Warning: ${warning}`),
    ...((await answers(upstream))
      ? []
      : [`Warning: nothing accepts connections at ${upstream} yet. Start your service.`]),
    '',
    'Start the gateway:',
    `  npx tollgate start${resolve(dir) === process.cwd() ? '' : ` --config ${fromHere(file)}`}`,
    '',
    ...firstRequest(operations, `http://127.0.0.1:${ports.listen}${basePath}`, secret),
    '',
    "Open the operators' pages and enter this token, which is shown only now:",
    `  http://127.0.0.1:${ports.admin}/`,
    `  ${token}`,
    '',
    'Commands read the token from a variable:',
    `  export TOLLGATE_ADMIN_TOKEN=${token}`,
    `  npx tollgate why ${firstKey}`,
  ];
}

/**
 * Makes the command for the first request. The request calls an operation, because another path would get 404 and would be charged. A GET
 * without parameters is preferred, because the operator can send it unchanged.
 *
 * @param baseUrl the URL to which the paths of operations are relative
 */
function firstRequest(operations: readonly Operation[], baseUrl: string, secret: string): string[] {
  const served = operations.filter((one) => !isGone(one, Date.now()));
  const gets = served.filter(({ method }) => method === 'GET');
  const first = gets.find(({ template }) => !template.includes('{')) ?? gets[0] ?? served[0];
  const { method, template } =
    first === undefined || first.method === anyMethod ? { method: 'GET', template: '/' } : first;
  const replace = template.includes('{') ? '. Replace the parameters in braces' : '';
  const words = [...(method === 'GET' ? [] : ['-X', method]), shellWord(baseUrl + template)].join(' ');
  return [
    `In a second terminal, send a request with the secret of the key, which is shown only now${replace}:`,
    `  curl -i -H 'Authorization: Bearer ${secret}' ${words}`,
  ];
}

/** Quotes a text for a shell if it has characters that a shell interprets. */
function shellWord(text: string): string {
  return /^[\w./:@%+=,~-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** @throws a CommandError with the problems that the configuration would have */
function validText(file: string, config: Omit<NewConfig, 'hasOwnPaths'>) {
  let report = '';
  // A path of the API may conflict with a path that the gateway itself serves, such as `/limits`. In this case, `init` leaves the gateway's
  // own paths out of the configuration, because these paths are optional.
  for (const hasOwnPaths of [true, false]) {
    const text = configText({ ...config, hasOwnPaths });
    const loaded = loadSettings({ file, env: process.env, drafts: new Map([[file, text]]) });
    if (loaded.kind === 'valid') {
      return { text, warnings: loaded.warnings, operations: loaded.settings.operations };
    }
    report = formatProblems(loaded.problems);
  }
  throw new CommandError(`${report}\n\nNothing was written.`);
}

function isOrigin(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`;
}

/** Returns the origin that an operator probably means when the URL has a path, credentials or no scheme. */
function originIn(text: string): string | undefined {
  const url = URL.parse(text.includes('://') ? text : `http://${text}`);
  return url !== null && /^https?:$/.test(url.protocol) ? url.origin : undefined;
}

function besideConfig(dir: string, api: string): string {
  const path = relative(resolve(dir), resolve(api));
  return path.startsWith('..') ? path : `./${path}`;
}

/**
 * Returns the path of the first server of an OpenAPI document, because the document's paths are relative to this server. Returns
 * an empty text if the document has no server or cannot be read. The check of the configuration reports an unreadable document.
 */
function basePathOf(api: string): string {
  try {
    const document: unknown = parse(serversOf(readFileSync(api, 'utf8')));
    const servers = isMapping(document) && Array.isArray(document.servers) ? document.servers : [];
    const [server] = servers;
    if (!isMapping(server) || typeof server.url !== 'string' || server.url.includes('{')) return '';
    return new URL(server.url, 'http://localhost').pathname.replace(/\/$/, '');
  } catch {
    return '';
  }
}

/**
 * Returns only the member `servers` of a YAML document, because the check of the configuration parses the whole document later. A JSON
 * document is returned unchanged.
 */
function serversOf(text: string): string {
  return /^\s*\{/.test(text) ? text : (/^servers:.*(?:\n(?:[ \t#-].*)?)*/m.exec(text)?.[0] ?? '');
}

function writeNew(file: string, text: string): void {
  try {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text, { flag: 'wx' });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CommandError(`${fromHere(file)} cannot be written (${reason}).`);
  }
}

async function answers(upstream: string): Promise<boolean> {
  const { hostname: host, port } = targetOf(upstream);
  const { health } = await checkConnection({
    host,
    port: Number(port),
    tls: undefined,
    timeoutMs: defaultBounds.checkLookupTimeoutMs,
  });
  return health === 'healthy';
}
