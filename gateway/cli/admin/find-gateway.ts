import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { formatProblems } from '../../config/problems/format-problems.ts';
import { readAdminAddress } from '../../config/read-admin-address.ts';
import type { Settings } from '../../shared/model.ts';
import { CommandError, unreadable } from '../output/command-error.ts';

/** The options and variables that select a gateway. */
export interface GatewayOptions {
  /** The URL of an admin listener. */
  readonly admin?: string | undefined;
  /** A PEM file with the trusted certificate authorities for the admin listener. */
  readonly ca?: string | undefined;
  /** The configuration file of the gateway. The command reads this file if `admin` is absent. */
  readonly config?: string | undefined;
}

/** The gateway that a command sends its requests to, with a token. */
export interface GatewayToAsk {
  readonly url: URL;
  readonly token: string;
  /**
   * The trusted certificates, which replace the certificate authorities of Node.js. If `isOwn` is true, `pem` is the certificate of the
   * admin listener itself. Only the gateway has the private key of this certificate, so the host name is not checked.
   */
  readonly trusted?: { readonly pem: string; readonly isOwn: boolean } | undefined;
}

/**
 * Finds the gateway that `--admin` or TOLLGATE_ADMIN names. Without this option and this variable, the function finds the gateway of the
 * named configuration.
 *
 * @throws a CommandError that names the option or variable to set
 */
export function findGateway(options: GatewayOptions, env: NodeJS.ProcessEnv): GatewayToAsk {
  const { admin, ca, config } = options;
  const token = readToken(env);
  const authorities = ca === undefined ? undefined : readAuthorities(ca);
  if (admin !== undefined && admin !== '') return { url: parseUrl(admin), token, trusted: authorities };
  if (config === undefined || config === '') {
    throw new CommandError(
      'Which gateway? Give --admin URL, the address of its admin listener such as http://127.0.0.1:9090, or set TOLLGATE_ADMIN; or name its configuration with --config FILE or TOLLGATE_CONFIG.',
    );
  }
  const address = readAdminAddress({ file: config, env });
  if (address.kind === 'unreadable') {
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

/** Whether the environment has a token for the admin API. */
export function hasToken({ TOLLGATE_ADMIN_TOKEN, TOLLGATE_ADMIN_TOKEN_FILE }: NodeJS.ProcessEnv): boolean {
  return Boolean(TOLLGATE_ADMIN_TOKEN || TOLLGATE_ADMIN_TOKEN_FILE);
}

function readToken(env: NodeJS.ProcessEnv): string {
  const token = tokenText(env);
  // A token has only printable ASCII characters, because it is sent in a header field. The error message does not repeat the token, because
  // the token is secret.
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
