import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { WholeResponse } from '../../shared/errors.ts';

/** A file that anybody may read and any cache may keep for a while. */
export interface ServedFile {
  /**
   * The response to a GET or HEAD with these fields: 200, or 304 when the client has the file already (RFC 9110 §13.1.2).
   *
   * @throws when the file cannot be read; the next request tries again
   */
  respond(headers: IncomingHttpHeaders): Promise<WholeResponse>;
}

interface FileOptions {
  readonly type: string;
  /** More fields of every response, flat name, value, … */
  readonly fields?: readonly string[];
  /** Default: a minute, so that an edit of the configuration shows soon, and a page that is opened again asks for nothing. */
  readonly cacheControl?: string;
  readonly read: () => Promise<Buffer>;
}

/** One content coding of a file, made once for all requests: a slow reader holds a reference to it and no copy. */
interface Representation {
  readonly body: Buffer;
  readonly coding: Coding | undefined;
  /** Each coding has its own (RFC 9110 §8.8.3.3). */
  readonly etag: string;
}

type Coding = 'br' | 'gzip';

/**
 * The file is read and compressed when it is first asked for: a gateway whose pages nobody opens pays nothing. That takes
 * 0.2 s for the largest, on other threads.
 */
export function createServedFile({
  type,
  fields = [],
  cacheControl = 'public, max-age=60',
  read,
}: FileOptions): ServedFile {
  let loading: Promise<readonly Representation[]> | undefined;

  async function load(): Promise<readonly Representation[]> {
    // Set before anything is awaited: requests that come meanwhile must not begin a load each.
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

/** Shortest first; a small file is not worth compressing. */
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
/** Of 11: the highest before the last two, which take thirty times as long for a tenth less. */
const brotliQuality = 9;

/** Whether the client names this coding in `Accept-Encoding` and does not exclude it (RFC 9110 §12.5.3). */
function accepts(accepted: string | string[] | undefined, coding: Coding): boolean {
  return String(accepted ?? '')
    .split(',')
    .some((member) => {
      const [name = '', ...parameters] = member.toLowerCase().split(';');
      return name.trim() === coding && !parameters.some((one) => /^[\t ]*q=0(?:\.0*)?[\t ]*$/.test(one));
    });
}

/** Whether `If-None-Match` lists this tag, by the weak comparison, or any (RFC 9110 §13.1.2). */
function isListed(field: string | undefined, etag: string): boolean {
  if (field === undefined) return false;
  return field.split(',').some((member) => {
    const tag = member.trim();
    return tag === '*' || tag === etag || tag === `W/${etag}`;
  });
}
