import type { IncomingMessage } from 'node:http';
import * as z from 'zod';
import { ranByField } from '../../admin/wires/ran-by.ts';
import type { AnswerOf, AskedWire, SentTo } from '../../shared/http/wire.ts';
import { printable, printableJson } from '../../shared/terminal/printable.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { CommandError, type CommandErrorKind } from '../output/command-error.ts';

export interface GatewayToAsk {
  readonly url: URL;
  readonly token: string;
  /** The person and the host, for the record of changes: "alice on ops-1". */
  readonly ranBy?: string;
  /**
   * The trusted certificates, which replace the certificate authorities of Node.js. If `isOwn` is true, `pem` is the certificate of the
   * admin listener itself. Only the gateway has the private key of this certificate, so the host name is not checked.
   */
  readonly trusted?: { readonly pem: string; readonly isOwn: boolean } | undefined;
}

export interface Reply<Body> {
  /** The JSON as it was received, for programs. */
  readonly json: unknown;
  /** The parsed JSON, for output to people. Control characters in the texts of the JSON are escaped. */
  readonly body: Body;
  /** The version of the key in the response, for `If-Match`; absent without one. */
  readonly version?: string | undefined;
}

export interface AdminClient {
  /** The scheme, host and port of the gateway, for messages. */
  readonly origin: string;
  /** The bounds of this command, which some wires need. */
  readonly bounds: Bounds;
  /** @throws a CommandError, with `mayBeDone` if no response to a change came */
  ask<Of extends AskedWire>(wire: Of, sent?: SentTo<Of>): Promise<Reply<AnswerOf<Of>>>;
}

interface Exchanged {
  readonly status: number;
  readonly text: string;
  readonly version: string | undefined;
  readonly retryAfterMs: number;
}

export function createAdminClient({ url, token, ranBy, trusted }: GatewayToAsk, bounds: Bounds): AdminClient {
  const { adminCallTimeoutMs: timeoutMs, adminReplyBytesMax: bytesMax } = bounds;
  const { origin } = url;
  // An `import` of node:http evaluates all its exports. One of them loads undici, which takes 30 ms of CPU time.
  const transport = process.getBuiltinModule(url.protocol === 'https:' ? 'node:https' : 'node:http');
  const agent = new transport.Agent({ keepAlive: true });
  const tls = {
    ca: trusted?.pem,
    ...(trusted?.isOwn && { allowPartialTrustChain: true, checkServerIdentity: () => undefined }),
  };

  async function ask<Of extends AskedWire>(
    { method, path, answers }: Of,
    { params, query = {}, body, headers: own }: SentTo<Of> = {},
  ): Promise<Reply<AnswerOf<Of>>> {
    const sent = body === undefined ? undefined : JSON.stringify(body);
    const target = new URL(`/api/v1${pathOf(path, params ?? {})}${searchOf(query)}`, url);
    const { status, text, version, retryAfterMs } = await exchange(method, target, sent, own);
    const json = status === 204 ? undefined : parseJson(origin, status, text);
    if (status < 200 || status > 299) {
      const hasBody = sent !== undefined;
      throw refusal(url, { status, json, hasBody, retryAfterMs });
    }
    const answer = answers[status];
    if (answer === undefined) throw strange(origin, `status ${status}`);
    const parsed = (answer.schema ?? z.undefined()).safeParse(printableJson(json));
    if (parsed.success) return { json, body: parsed.data as AnswerOf<Of>, version };
    const place = printable(parsed.error.issues[0]?.path.join('.') ?? '');
    throw strange(origin, `a response in which \`${place}\` is not as expected`);
  }

  async function exchange(
    method: string,
    target: URL,
    sent: string | undefined,
    own: Readonly<Record<string, string>> | undefined,
  ): Promise<Exchanged> {
    const signal = AbortSignal.timeout(timeoutMs);
    const headers = {
      ...own,
      authorization: `Bearer ${token}`,
      accept: 'application/json',
      ...(method !== 'GET' && ranBy !== undefined && { [ranByField]: ranBy }),
      ...(sent !== undefined && {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(sent),
      }),
    };
    try {
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        const request = transport.request(target, { agent, method, headers, signal, ...tls });
        request.on('response', resolve).on('error', reject).end(sent);
      });
      const { statusCode: status = 0, headers: fields } = response;
      const retryAfterMs = 1_000 * (Number(fields['retry-after']) || 0);
      return { status, text: await readBody(response), version: fields.etag, retryAfterMs };
    } catch (error) {
      if (error instanceof CommandError) throw error;
      throw unreachable(origin, signal.aborted ? `no response within ${timeoutMs / 1_000} s` : error);
    }
  }

  async function readBody(response: IncomingMessage): Promise<string> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of response) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > bytesMax) throw strange(origin, `a response of more than ${bytesMax} octets`);
    }
    return Buffer.concat(chunks).toString();
  }

  return { origin, bounds, ask };
}

function parseJson(origin: string, status: number, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // A proxy answers so while the gateway behind it restarts.
    throw strange(origin, `status ${status} and no JSON`, status >= 500 ? 'passing' : 'final');
  }
}

/** These error codes mean that the request was not sent. */
const notConnected = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'];

function unreachable(origin: string, error: unknown): CommandError {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const reason = printable(error instanceof Error ? error.message || code : String(error));
  if (code === 'EPROTO' || code === 'ERR_SSL_WRONG_VERSION_NUMBER') {
    return new CommandError(`${origin} does not speak TLS: use http:// in place of https://.`);
  }
  if (/CERT|SIGNATURE|ALTNAME/.test(code)) {
    return new CommandError(
      `The certificate of ${origin} is not accepted (${reason}): name the certificate of its authority with --ca FILE, or the configuration of the gateway with --config.`,
    );
  }
  return new CommandError(
    `No server answers at ${origin} (${reason}): start the gateway ("npm start", or "tollgate run --config FILE"), or set --admin or TOLLGATE_ADMIN to the address of its admin listener.`,
    'passing',
    { mayBeDone: !notConnected.includes(code) },
  );
}

function strange(origin: string, what: string, kind: CommandErrorKind = 'final'): CommandError {
  return new CommandError(
    `${origin} sent ${what}: is it the admin listener of a gateway with the same version as this command? The default port of an admin listener is 9090.`,
    kind,
  );
}

const noAdminListener = ({ origin }: URL) =>
  `${origin} is the listener for clients: use the admin listener of this gateway, which has its own port, by default 9090.`;

const advice: Readonly<Record<string, (url: URL, message: string) => string>> = {
  invalid_token: ({ origin }) =>
    `The gateway at ${origin} does not know the token of TOLLGATE_ADMIN_TOKEN or TOLLGATE_ADMIN_TOKEN_FILE: its digest must be in \`admin.tokens\` of the gateway's configuration ("tollgate admin token --name NAME --may read" makes both).`,
  no_tokens: ({ origin }, message) => `${origin}: ${message}`,
  read_only_token: ({ origin }, message) =>
    `${origin}: ${message} "tollgate admin token --name NAME --may write" makes a token that may change keys.`,
  unknown_host: ({ origin, hostname }) =>
    `The gateway at ${origin} does not accept this name: use its address, or add ${hostname} to its \`admin.hosts\`.`,
  missing_key: noAdminListener,
  invalid_key: noAdminListener,
  conflict: (_, message) => message,
  precondition_failed: (_, message) => message,
};

interface Refused {
  /** No 2xx. */
  readonly status: number;
  readonly json: unknown;
  /** The request had a body, so a fault is in what the command sent. */
  readonly hasBody: boolean;
  readonly retryAfterMs: number;
}

function refusal(url: URL, { status, json, hasBody, retryAfterMs }: Refused): CommandError {
  const { code, message } = Object(printableJson(json));
  const known = Object.hasOwn(advice, String(code)) ? advice[code] : undefined;
  if (known !== undefined) return new CommandError(known(url, String(message)));
  if (code === 'not_found') {
    // Other servers, and gateway versions without the requested path, also respond with the code `not_found`.
    const isOurs = /^There is no (?!such path)/.test(message);
    return isOurs
      ? new CommandError(message, 'not_found')
      : strange(url.origin, `status ${status}`, 'not_found');
  }
  if (typeof message !== 'string') return strange(url.origin, `status ${status} and no reason`);
  if (code === 'invalid_request' && hasBody) return new CommandError(message);
  const kind = status === 429 || status >= 500 ? 'passing' : 'final';
  return new CommandError(`The gateway at ${url.origin} answered ${status}: ${message}`, kind, {
    retryAfterMs,
  });
}

function pathOf(template: string, params: Readonly<Record<string, string>>): string {
  return template.replaceAll(/\{(\w+)\}/g, (_, name) => encodeURIComponent(params[name] ?? ''));
}

function searchOf(query: Readonly<Record<string, string | number | undefined>>): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) parameters.append(name, String(value));
  return parameters.size === 0 ? '' : `?${parameters}`;
}
