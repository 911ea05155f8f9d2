import { generateKeyPairSync, sign } from 'node:crypto';
import { request } from 'undici';
import { digestSecret } from '../../gateway/shared/secrets.ts';

/** An entry of a report in the form of GitHub. */
export interface ReportEntry {
  readonly token: string;
  readonly type?: string;
  readonly url?: string;
  readonly source?: string;
}

export type Reporter = ReturnType<typeof makeReporter>;

/** Makes a key pair as GitHub has it, and signs reports with it. */
export function makeReporter(identifier = 'key-of-the-test') {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const key = publicKey.export({ type: 'spki', format: 'pem' }).toString();
  return {
    identifier,
    /** The public key in the form of GitHub's public keys API. */
    publicKeys: JSON.stringify({ public_keys: [{ key_identifier: identifier, key, is_current: true }] }),
    signature: (body: string | Buffer) => sign('sha256', Buffer.from(body), privateKey).toString('base64'),
    /** The header fields of a signed report. */
    fieldsFor(body: string | Buffer): Record<string, string> {
      return {
        'content-type': 'application/json',
        'github-public-key-identifier': identifier,
        'github-public-key-signature': this.signature(body),
      };
    },
  };
}

export interface ReportReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests assert what is in it
  readonly body: any;
}

/** Sends a signed report to the path `/leaks` of a gateway. */
export async function sendReport(
  origin: string,
  reporter: Reporter,
  entries: readonly ReportEntry[] | string,
  headers: Readonly<Record<string, string>> = {},
): Promise<ReportReply> {
  const body = typeof entries === 'string' ? entries : JSON.stringify(entries);
  const reply = await request(`${origin}/leaks`, {
    method: 'POST',
    headers: { ...reporter.fieldsFor(body), ...headers },
    body,
    reset: true,
  });
  const text = await reply.body.text();
  return { status: reply.statusCode, headers: reply.headers, text, body: JSON.parse(text) };
}

export function entryFor(token: string, more: Omit<ReportEntry, 'token'> = {}): ReportEntry {
  return {
    token,
    type: 'tollgate_api_key',
    url: 'https://github.com/octocat/Hello-World/blob/main/config.js',
    source: 'content',
    ...more,
  };
}

/** The expected entry of the response. */
export function labelOf(token: string, label: 'true_positive' | 'false_positive', type = 'tollgate_api_key') {
  return { token_hash: digestSecret(token), token_type: type, label };
}
