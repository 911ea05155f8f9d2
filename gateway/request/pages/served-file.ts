import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import { createRequire } from 'node:module';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { WholeResponse } from '../../shared/errors.ts';

/** A public file that caches may keep for a while. */
export interface ServedFile {
  /**
   * Makes the response to a GET or HEAD with these header fields. The status is 304 when the client already has the file (RFC 9110
   * §13.1.2), and otherwise 200.
   *
   * @throws when the file cannot be read; the next request reads it again
   */
  respond(headers: IncomingHttpHeaders): Promise<WholeResponse>;
}

interface FileOptions {
  readonly type: string;
  /** Additional header fields of every response, as a flat list of names and values. */
  readonly fields?: readonly string[];
  /** The value of Cache-Control. The default is one minute, so that browsers show edits soon. */
  readonly cacheControl?: string;
  readonly read: () => Promise<Buffer>;
}

/** The file in one content coding. All responses share the same buffer. */
interface Representation {
  readonly body: Buffer;
  readonly coding: Coding | undefined;
  /** The entity tag. Each content coding has its own tag (RFC 9110 §8.8.3.3). */
  readonly etag: string;
}

type Coding = 'br' | 'gzip';

const fileTypes = { script: 'text/javascript; charset=utf-8', style: 'text/css; charset=utf-8' };

const { resolve } = createRequire(import.meta.url);

/**
 * Makes a served file from a file of the gateway.
 *
 * @param file the URL of a file, or a name that `imports` of `package.json` defines
 */
export function programFile(
  type: keyof typeof fileTypes,
  file: URL | string,
  options: Pick<FileOptions, 'cacheControl'> = {},
): ServedFile {
  const read = async () => readFile(typeof file === 'string' ? resolve(file) : file);
  return createServedFile({ type: fileTypes[type], read, ...options });
}

/**
 * Creates a file that is read and compressed on its first request, so unused pages cost nothing. The compression runs on other threads and
 * takes up to 0.2 s.
 */
export function createServedFile({
  type,
  fields = [],
  cacheControl = 'public, max-age=60',
  read,
}: FileOptions): ServedFile {
  let loading: Promise<readonly Representation[]> | undefined;

  async function load(): Promise<readonly Representation[]> {
    // `loading` is set before the first await, so that concurrent requests share one read.
    loading ??= read().then(representationsOf);
    try {
      return await loading;
    } catch (error) {
      loading = undefined;
      throw error;
    }
  }

  return {
    async respond(headers) {
      const all = await load();
      const accepted = headers['accept-encoding'];
      const chosen = all.find(({ coding }) => coding === undefined || accepts(accepted, coding));
      if (chosen === undefined) throw new Error('a file without its plain representation');
      const { body, coding, etag } = chosen;
      const common = [...fields, 'Cache-Control', cacheControl, ...alwaysSent, 'ETag', etag];
      if (isListed(headers['if-none-match'], etag)) return { status: 304, fields: common, body: '' };
      if (coding !== undefined) common.push('Content-Encoding', coding);
      const length = String(body.length);
      return { status: 200, fields: [...common, 'Content-Type', type, 'Content-Length', length], body };
    },
  };
}

const alwaysSent = [
  'Vary',
  'Accept-Encoding',
  'X-Content-Type-Options',
  'nosniff',
  'Referrer-Policy',
  'no-referrer',
];

/** Makes the representations of a file, the smallest first. Small files are not compressed. */
async function representationsOf(plain: Buffer): Promise<readonly Representation[]> {
  const digest = hash('sha256', plain, 'hex').slice(0, 32);
  const all: Representation[] = [{ body: plain, coding: undefined, etag: `"${digest}"` }];
  if (plain.length < compressedFromBytes) return all;
  const [brotli, zipped] = await Promise.all([
    promisify(brotliCompress)(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: brotliQuality } }),
    promisify(gzip)(plain),
  ]);
  all.unshift(
    { body: brotli, coding: 'br', etag: `"${digest}-br"` },
    { body: zipped, coding: 'gzip', etag: `"${digest}-gzip"` },
  );
  return all;
}

const compressedFromBytes = 1_024;
/** Brotli qualities go up to 11. Qualities 10 and 11 take thirty times as long and save only a tenth of the octets. */
const brotliQuality = 9;

/** Whether `Accept-Encoding` lists this coding with a weight above 0 (RFC 9110 §12.5.3). */
function accepts(accepted: string | string[] | undefined, coding: Coding): boolean {
  return String(accepted ?? '')
    .split(',')
    .some((member) => {
      const [name = '', ...parameters] = member.toLowerCase().split(';');
      return name.trim() === coding && !parameters.some((one) => /^[\t ]*q=0(?:\.0*)?[\t ]*$/.test(one));
    });
}

/** Whether `If-None-Match` lists this tag, by weak comparison, or `*` (RFC 9110 §13.1.2). */
function isListed(field: string | undefined, etag: string): boolean {
  if (field === undefined) return false;
  return field.split(',').some((member) => {
    const tag = member.trim();
    return tag === '*' || tag === etag || tag === `W/${etag}`;
  });
}
