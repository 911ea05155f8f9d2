import { randomBytes } from 'node:crypto';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect } from 'vitest';
import { digestSecret, issueAdminToken } from '../../gateway/shared/secrets.ts';

/** A token of the admin API, and its entry for `admin.tokens`. */
export function makeToken(may: 'read' | 'write' = 'read', name = `t-${randomBytes(4).toString('hex')}`) {
  const token = issueAdminToken();
  return { token, entry: { name, may, sha256: digestSecret(token) } };
}

export interface AdminReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** Undefined when the body is empty. */
  // biome-ignore lint/suspicious/noExplicitAny: tests assert what is in it
  readonly body: any;
}

/** Sends one request to an admin listener, and asserts the properties that each of its responses must have. */
export async function askAdmin(
  port: number,
  path: string,
  {
    token,
    method = 'GET',
    headers = {},
    json,
    bytes = json === undefined ? '' : JSON.stringify(json),
  }: {
    readonly token?: string;
    readonly method?: string;
    readonly headers?: Readonly<Record<string, string>>;
    /** The body: bytes, or any other value, which is sent as JSON. */
    readonly json?: unknown;
    readonly bytes?: string | Buffer;
  } = {},
): Promise<AdminReply> {
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const type = json === undefined ? {} : { 'content-type': 'application/json' };
  const sent = request({
    host: '127.0.0.1',
    port,
    path,
    method,
    // Each request has a new connection. The listener may close an idle connection at the moment at which a slow client sends a request.
    agent: false,
    headers: { ...authorization, ...type, ...headers },
  });
  sent.end(bytes);
  const reply = await new Promise<import('node:http').IncomingMessage>((resolve, reject) => {
    const fail = (cause: Error) => reject(new Error(`${method} ${path} failed: ${cause.message}`, { cause }));
    sent.once('response', resolve).once('error', fail);
  });
  const body = await text(reply);
  const status = reply.statusCode ?? 0;
  expect(reply.headers).toMatchObject({
    'x-request-id': expect.stringMatching(/^[0-9a-f-]{36}$/),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...(status !== 204 && { 'content-length': expect.stringMatching(/^\d+$/) }),
  });
  expect(Object.keys(reply.headers).filter((name) => /cookie|access-control/.test(name))).toEqual([]);
  if (path.startsWith('/metrics')) return { status, headers: reply.headers, text: body, body: undefined };
  expect(reply.headers['content-type']).toBe(status === 204 ? undefined : 'application/json');
  if (method === 'HEAD') expect(body).toBe('');
  const parsed = body === '' ? undefined : JSON.parse(body);
  if (status >= 400 && method !== 'HEAD' && !path.startsWith('/readyz')) {
    expect(parsed).toEqual({ code: expect.any(String), message: expect.any(String), status });
  }
  return { status, headers: reply.headers, text: body, body: parsed };
}
