import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { hostname, userInfo } from 'node:os';
import type { Settings } from '../../shared/model.ts';
import { defaultBounds } from '../../shared/timeouts-and-sizes.ts';
import type { GatewayOptions } from '../command.ts';
import { CommandError, unreadable } from '../output/command-error.ts';
import { configOr } from '../start/named-config.ts';
import { type AdminClient, createAdminClient, type GatewayToAsk } from './admin-client.ts';

/** @throws a CommandError that says what to set, where no gateway or no token is named */
export async function clientOf(options: GatewayOptions): Promise<AdminClient> {
  const gateway = await findGateway({ ...options, config: configOr(options.config) }, process.env);
  return createAdminClient({ ...gateway, ranBy: ranBy(process.env) }, defaultBounds);
}

/**
 * Finds the gateway that `--admin` or TOLLGATE_ADMIN names, or else the gateway of the named configuration.
 *
 * @throws a CommandError that names the option or variable to set
 */
async function findGateway(options: GatewayOptions, env: NodeJS.ProcessEnv): Promise<GatewayToAsk> {
  const { admin, ca, config } = options;
  const token = readToken(env);
  const authorities = ca === undefined ? undefined : readAuthorities(ca);
  if (admin !== undefined && admin !== '') return { url: parseUrl(admin), token, trusted: authorities };
  if (config === undefined || config === '') {
    throw new CommandError(
      'Which gateway? Give --admin URL, the address of its admin listener such as http://127.0.0.1:9090, or set TOLLGATE_ADMIN; or name its configuration with --config FILE or TOLLGATE_CONFIG.',
    );
  }
  const { readAdminAddress } = await import('../../config/read-admin-address.ts');
  const address = readAdminAddress({ file: config, env });
  if (address.kind === 'unreadable') {
    const { formatProblems } = await import('../../config/problems/format-problems.ts');
    throw new CommandError(
      `${formatProblems(address.problems)}\nSo this file does not give the address of the gateway: set --admin URL or TOLLGATE_ADMIN.`,
    );
  }
  if (address.port === 0) {
    throw new CommandError(
      `${config}: \`admin.port\` is 0, which means any free port: set --admin URL to the port that the gateway logged at its start.`,
    );
  }
  const { certificate } = address;
  const scheme = certificate === undefined ? 'http' : 'https';
  const url = new URL(`${scheme}://${reachable(address.host)}:${address.port}`);
  const own = certificate === undefined ? undefined : { pem: certificate, isOwn: true };
  return { url, token, trusted: authorities ?? own };
}

/** Returns the URL of the admin listener that the option or the settings name; undefined if the port is not known. */
export function adminUrlOf({ admin }: GatewayOptions, settings: Pick<Settings, 'admin'>): URL | undefined {
  if (admin !== undefined && admin !== '') return parseUrl(admin);
  const { host, port, tls } = settings.admin;
  return port === 0
    ? undefined
    : new URL(`${tls === undefined ? 'http' : 'https'}://${reachable(host)}:${port}`);
}

export function hasToken({ TOLLGATE_ADMIN_TOKEN, TOLLGATE_ADMIN_TOKEN_FILE }: NodeJS.ProcessEnv): boolean {
  return Boolean(TOLLGATE_ADMIN_TOKEN || TOLLGATE_ADMIN_TOKEN_FILE);
}

/**
 * The login name of the person and the host name, "alice on ops-1". For a command that runs with sudo, it is the person who ran sudo. A
 * header field has only printable ASCII, so each other character becomes a question mark.
 */
function ranBy({ SUDO_USER }: NodeJS.ProcessEnv): string {
  const login = (process.getuid?.() === 0 && SUDO_USER) || loginName();
  const text = `${login.slice(0, 32)} on ${hostname().slice(0, 63)}`;
  return text.replace(/[^\x20-\x7e]/gu, '?').trim();
}

function loginName(): string {
  try {
    return userInfo().username;
  } catch {
    // The user of a container often has no name.
    return `user ${process.getuid?.()}`;
  }
}

function readToken(env: NodeJS.ProcessEnv): string {
  const token = tokenText(env);
  // A token has only printable ASCII characters, because it is sent in a header field. It is secret, so the error does not repeat it.
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new CommandError(
      'The token in TOLLGATE_ADMIN_TOKEN has a space, a line break or another character that no token has. Set it to the token alone.',
    );
  }
  return token;
}

function tokenText({ TOLLGATE_ADMIN_TOKEN, TOLLGATE_ADMIN_TOKEN_FILE }: NodeJS.ProcessEnv): string {
  if (TOLLGATE_ADMIN_TOKEN) return TOLLGATE_ADMIN_TOKEN.trim();
  if (TOLLGATE_ADMIN_TOKEN_FILE)
    return readText('TOLLGATE_ADMIN_TOKEN_FILE', TOLLGATE_ADMIN_TOKEN_FILE).trim();
  throw new CommandError(
    'Which token? Set TOLLGATE_ADMIN_TOKEN, or TOLLGATE_ADMIN_TOKEN_FILE to a file with it. "tollgate admin token --name NAME --may read" makes a token and its line for `admin.tokens` of the configuration; use --may write for commands that change something.',
  );
}

function parseUrl(text: string): URL {
  const url = URL.parse(text);
  const isPlain = url !== null && url.username === '' && url.password === '' && url.pathname === '/';
  if (isPlain && /^https?:$/.test(url.protocol) && !/[?#]/.test(text)) return url;
  // The error message does not repeat the URL, because the URL may contain a password.
  throw new CommandError(
    'The address of the admin listener (--admin, TOLLGATE_ADMIN) must be a URL such as http://127.0.0.1:9090, without user and path.',
  );
}

function readAuthorities(file: string): { readonly pem: string; readonly isOwn: boolean } {
  const pem = readText('--ca', file);
  if (!pem.includes('-----BEGIN CERTIFICATE-----')) {
    throw new CommandError(`--ca ${file} has no certificate in PEM (-----BEGIN CERTIFICATE-----).`);
  }
  return { pem, isOwn: false };
}

function readText(name: string, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw unreadable(`${file} of ${name}`, error);
  }
}

/** Returns the host name by which programs on the listener's machine reach the listener. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return isIP(host) === 6 ? `[${host}]` : host;
}
