import type { IncomingMessage } from 'node:http';
import type * as z from 'zod';
import { closestName } from '../../shapes/closest-name.ts';
import { nameOf, type ShapeFault, shapeFaults } from '../../shapes/shape-faults.ts';
import type { Bounds } from '../../timeouts-and-sizes.ts';
import { type AdminResponse, errorResponse } from '../admin-response.ts';

export type ParsedBody =
  | { readonly kind: 'parsed'; readonly body: unknown }
  | { readonly kind: 'refused'; readonly response: AdminResponse };

/** So much more than is allowed is read and dropped, so that a client that writes first still reads the response. */
const droppedPerAllowed = 8;

/**
 * Reads the body of a request as JSON of the given shape. A body that is absent is an empty object: then the members are
 * missing, if any is needed.
 */
export async function parseBody(
  req: IncomingMessage,
  schema: z.ZodType,
  { bytesMax, timeoutMs }: { readonly bytesMax: number; readonly timeoutMs: number },
): Promise<ParsedBody> {
  const read = await readBody(req, bytesMax, timeoutMs);
  if (!Buffer.isBuffer(read)) return refused(read);
  const value = jsonOf(req, read);
  if (value.kind === 'refused') return value;
  const parsed = schema.safeParse(value.body);
  if (parsed.success) return { kind: 'parsed', body: parsed.data };
  const [fault] = shapeFaults(parsed.error.issues);
  return refused('invalid_request', fault && faultText(fault));
}

type BodyRefusal = 'payload_too_large' | 'request_timeout' | 'invalid_request' | 'unsupported_media_type';

/** All of it, or why not. A client that goes away gets the last of these, which nobody reads. */
function readBody(
  req: IncomingMessage,
  bytesMax: number,
  timeoutMs: Bounds['adminBodyTimeoutMs'],
): Promise<Buffer | BodyRefusal> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const timer = setTimeout(end, timeoutMs, 'request_timeout');
    req.on('data', onData);
    req.once('end', () => end(bytes > bytesMax ? 'payload_too_large' : Buffer.concat(chunks)));
    req.once('error', () => end('invalid_request'));
    req.once('close', () => end('invalid_request'));

    function onData(chunk: Buffer): void {
      bytes += chunk.length;
      if (bytes <= bytesMax) chunks.push(chunk);
      else if (bytes > droppedPerAllowed * bytesMax) end('payload_too_large');
    }

    function end(found: Buffer | BodyRefusal): void {
      clearTimeout(timer);
      req.off('data', onData);
      resolve(found);
    }
  });
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

function jsonOf({ headers }: IncomingMessage, bytes: Buffer): ParsedBody {
  if (bytes.length === 0) return { kind: 'parsed', body: {} };
  if (headers['content-encoding'] !== undefined) {
    return refused('unsupported_media_type', 'The request body must not be compressed.');
  }
  if (!isJson(headers['content-type'] ?? '')) return refused('unsupported_media_type');
  try {
    return { kind: 'parsed', body: JSON.parse(utf8.decode(bytes)) };
  } catch {
    // What the parser says repeats a part of the body, which may be a secret.
    return refused('invalid_request', 'The request body is not valid JSON in UTF-8.');
  }
}

function isJson(contentType: string): boolean {
  return /^application\/json[ \t]*(;[ \t]*charset="?utf-8"?[ \t]*)?$/i.test(contentType);
}

function refused(code: BodyRefusal, message?: string): Extract<ParsedBody, { kind: 'refused' }> {
  return { kind: 'refused', response: errorResponse(code, message) };
}

/** A sentence that names the member. */
function faultText(fault: ShapeFault): string {
  if (fault.kind === 'unknown') return unknownMember(fault);
  return fault.path.length === 0
    ? `The request body ${fault.what}.`
    : `The member ${nameOf(fault.path)} ${fault.what}.`;
}

/** A name may be a secret that stands at the wrong place: a long one that resembles none is not repeated. */
function unknownMember({ path, name, known }: Extract<ShapeFault, { kind: 'unknown' }>): string {
  const closest = closestName(name, known);
  if (closest !== undefined) return `The member ${nameOf(path)} is unknown; did you mean \`${closest}\`?`;
  const which = /^[\w-]{1,24}$/.test(name) ? `The member ${nameOf(path)} is unknown` : 'A member is unknown';
  return `${which}; known here: ${known.join(', ')}.`;
}
