import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { WholeResponse } from '../../shared/errors.ts';

/** A public file that caches may keep for a while. */
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
  /** Further fields of every response, flat name, value, … */
  readonly fields?: readonly string[];
  /** The default of one minute shows edits of the configuration soon, and saves requests when a page is opened again. */
  readonly cacheControl?: string;
  readonly read: () => Promise<Buffer>;
}

/** A content coding of a file, made once for all requests. A slow reader holds a reference to it, not a copy. */
interface Representation {
  readonly body: Buffer;
  readonly coding: Coding | undefined;
  /** Differs for each coding (RFC 9110 §8.8.3.3). */
  readonly etag: string;
}

type Coding = 'br' | 'gzip';

/**
 * Reads and compresses the file on the first request, so unused pages cost nothing. That takes 0.2 s for the largest file, on other
 * threads.
 */
export function createServedFile({
  type,
  fields = [],
  cacheControl = 'public, max-age=60',
  read,
}: FileOptions): ServedFile {
  let loading: Promise<readonly Representation[]> | undefined;

  async function load(): Promise<readonly Representation[]> {
    // Set before the first await, so that concurrent requests share one load.
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

/** The shortest comes first. A small file is not worth compressing. */
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
/** 11 is the highest. The two highest take thirty times as long for a tenth fewer octets. */
const brotliQuality = 9;

/** Whether `Accept-Encoding` names this coding without excluding it (RFC 9110 §12.5.3). */
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
