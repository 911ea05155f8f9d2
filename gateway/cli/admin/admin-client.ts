import * as http from 'node:http';
import * as https from 'node:https';
import type * as z from 'zod';
import { printable, printableJson } from '../../shared/terminal/printable.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { CommandError, type CommandErrorKind } from '../output/command-error.ts';
import type { GatewayToAsk } from './find-gateway.ts';

/** A response of the admin API. */
export interface Reply<Body> {
  /** The JSON as it came, for programs. */
  readonly json: unknown;
  /** What a command shows of it. No text in it has anything that a terminal obeys. */
  readonly body: Body;
}

export type Query = Readonly<Record<string, string | undefined>>;

/** Asks the admin API of one gateway. */
export interface AdminClient {
  /** Where it asks, for messages. */
  readonly origin: string;
  /**
   * @param path below `/api/v1`, its segments encoded
   * @param query members that are undefined are left out
   * @throws a CommandError
   */
  get<Schema extends z.ZodType>(path: string, query: Query, schema: Schema): Promise<Reply<z.output<Schema>>>;
  /**
   * Sends what changes something, or what may stand in no URL.
   *
   * @param schema of the response; one without a body is undefined
   * @throws a CommandError, with `mayBeDone` where no response came
   */
  send<Schema extends z.ZodType>(sent: Sent, schema: Schema): Promise<Reply<z.output<Schema>>>;
}

export interface Sent {
  readonly method: 'POST' | 'PATCH' | 'DELETE';
  /** Below `/api/v1`, its segments encoded. */
  readonly path: string;
  /** Sent as JSON. */
  readonly body?: unknown;
}

export type ClientBounds = Pick<Bounds, 'adminCallTimeoutMs' | 'adminReplyBytesMax'>;

export function createAdminClient(
  { url, token, trusted }: GatewayToAsk,
  { adminCallTimeoutMs: timeoutMs, adminReplyBytesMax: bytesMax }: ClientBounds,
): AdminClient {
  const { origin } = url;
  const transport = url.protocol === 'https:' ? https : http;
  const agent = new transport.Agent({ keepAlive: true });
  const tls =
    trusted === undefined
      ? {}
      : {
          ca: trusted.pem,
          ...(trusted.isOwn && { allowPartialTrustChain: true, checkServerIdentity: () => undefined }),
        };

  async function ask(
    target: string,
    { method, body }: { readonly method: string; readonly body?: string | undefined },
  ): Promise<{ readonly status: number; readonly text: string }> {
    const signal = AbortSignal.timeout(timeoutMs);
    const headers = {
      authorization: `Bearer ${token}`,
      accept: 'application/json',
      ...(body !== undefined && {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      }),
    };
    try {
      const response = await new Promise<http.IncomingMessage>((resolve, reject) => {
        const request = transport.request(new URL(target, url), { agent, method, headers, signal, ...tls });
        request.on('response', resolve).on('error', reject).end(body);
      });
      return { status: response.statusCode ?? 0, text: await readBody(response) };
    } catch (error) {
      if (error instanceof CommandError) throw error;
      throw unreachable(signal.aborted ? `no response within ${timeoutMs / 1_000} s` : error);
    }
  }

  async function readBody(response: http.IncomingMessage): Promise<string> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of response) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > bytesMax) throw strange(`a response of more than ${bytesMax} octets`);
    }
    return Buffer.concat(chunks).toString();
  }

  function unreachable(error: unknown): CommandError {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    const reason = printable(error instanceof Error ? error.message || code : String(error));
    if (code === 'EPROTO' || code === 'ERR_SSL_WRONG_VERSION_NUMBER') {
      return new CommandError(`${origin} does not speak TLS: ask http:// in place of https://.`);
    }
    if (/CERT|SIGNATURE|ALTNAME/.test(code)) {
      return new CommandError(
        `The certificate of ${origin} is not accepted (${reason}): name the one of its authority with --ca FILE, or the configuration of the gateway with --config.`,
      );
    }
    const advice =
      'start the gateway ("npm start", or "tollgate run --config FILE"), or say with --admin or TOLLGATE_ADMIN where its admin listener is';
    const mayBeDone = !notConnected.has(code);
    return new CommandError(`Nobody answers at ${origin} (${reason}): ${advice}.`, 'passing', { mayBeDone });
  }

  function strange(what: string, kind: CommandErrorKind = 'final'): CommandError {
    return new CommandError(
      `${origin} sent ${what}: is it the admin listener of a gateway, and of this version? By default that has port 9090.`,
      kind,
    );
  }

  /** @param status is none of those that a request which was done is answered with */
  function refusal(status: number, json: unknown): CommandError {
    const { code, message } = Object(printableJson(json));
    switch (code) {
      case 'invalid_token':
        return new CommandError(
          `The gateway at ${origin} does not know the token of TOLLGATE_ADMIN_TOKEN or TOLLGATE_ADMIN_TOKEN_FILE: its digest must stand in \`admin.tokens\` of the gateway's configuration ("tollgate admin token --name NAME --may read" makes both).`,
        );
      case 'no_tokens':
        return new CommandError(`${origin}: ${message}`);
      case 'read_only_token':
        return new CommandError(
          `${origin}: ${message} "tollgate admin token --name NAME --may write" makes one that may change keys.`,
        );
      case 'unknown_host':
        return new CommandError(
          `The gateway at ${origin} is not known by this name: ask for it by its address, or add ${url.hostname} to its \`admin.hosts\`.`,
        );
      case 'missing_key':
      case 'invalid_key':
        return new CommandError(
          `${origin} is where clients call: ask the admin listener of this gateway, which has a port of its own, by default 9090.`,
        );
      case 'not_found':
        // Other servers have this code too, and a gateway for a path that its version does not have.
        if (!/^There is no (?!such path)/.test(message)) return strange(`status ${status}`, 'not_found');
        return new CommandError(message, 'not_found');
      case 'conflict':
      case 'precondition_failed':
        return new CommandError(String(message));
    }
    if (typeof message !== 'string') return strange(`status ${status} and no reason`);
    const kind = status === 429 || status >= 500 ? 'passing' : 'final';
    return new CommandError(`The gateway at ${origin} answered ${status}: ${message}`, kind);
  }

  async function exchange<Schema extends z.ZodType>(
    target: string,
    sent: Parameters<typeof ask>[1],
    schema: Schema,
  ): Promise<Reply<z.output<Schema>>> {
    const { status, text } = await ask(`/api/v1${target}`, sent);
    const json = status === 204 ? undefined : parseJson(status, text);
    if (status < 200 || status > 299) throw refusal(status, json);
    const parsed = schema.safeParse(printableJson(json));
    if (parsed.success) return { json, body: parsed.data };
    const [issue] = parsed.error.issues;
    throw strange(`a response in which \`${printable(issue?.path.join('.') ?? '')}\` is not as expected`);
  }

  function parseJson(status: number, text: string): unknown {
    try {
      return JSON.parse(text);
    } catch {
      // A listener that speaks TLS tells a client without TLS so, in JSON; this is something else.
      throw strange(`status ${status} and no JSON`);
    }
  }

  return {
    origin,
    get: (path, query, schema) => exchange(`${path}${searchOf(query)}`, { method: 'GET' }, schema),
    send({ method, path, body }, schema) {
      const text = body === undefined ? undefined : JSON.stringify(body);
      return exchange(path, { method, body: text }, schema);
    },
  };
}

/** With these no request was sent. */
const notConnected: ReadonlySet<string> = new Set([
  ...['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'],
]);

function searchOf(query: Query): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.append(name, value);
  const text = parameters.toString();
  return text === '' ? '' : `?${text}`;
}
