import type { IncomingMessage } from 'node:http';
import type * as z from 'zod';
import { closestName } from '../../shared/schema/closest-name.ts';
import { nameOf, type ShapeFault, shapeFaults } from '../../shared/schema/schema-faults.ts';
import { countMembers } from '../../shared/structures/plain-data.ts';
import { type AdminResponse, errorResponse } from '../admin-response.ts';

/** The octets of a body with its header fields, as plain data that another thread can parse. */
export interface SentBody {
  readonly octets: Uint8Array;
  readonly type: string | undefined;
  readonly encoding: string | undefined;
}

interface BodyRefused {
  readonly kind: 'refused';
  readonly response: AdminResponse;
}

export type ReadBody = { readonly kind: 'read'; readonly sent: SentBody | undefined } | BodyRefused;

export type ParsedBody = { readonly kind: 'parsed'; readonly body: unknown } | BodyRefused;

/**
 * If a body is too large, the listener still reads and drops it, up to this multiple of the allowed size. Some clients
 * read the response only after they have sent the whole body, and would otherwise not receive the error.
 */
const droppedPerAllowed = 8;

export async function readBody(
  req: IncomingMessage,
  bounds: { readonly bytesMax: number; readonly timeoutMs: number },
): Promise<ReadBody> {
  const read = await octetsOf(req, bounds);
  if (!Buffer.isBuffer(read)) return refused(read);
  const { 'content-type': type, 'content-encoding': encoding } = req.headers;
  return { kind: 'read', sent: { octets: read, type, encoding } };
}

/**
 * Parses a body as JSON and validates it. An absent body counts as an empty object. The function counts the members
 * before validation, because validating a member takes 100 times as long as parsing it.
 */
export function parseBody(sent: SentBody, schema: z.ZodType, membersMax: number): ParsedBody {
  const value = jsonOf(sent);
  if (value.kind === 'refused') return value;
  if (countMembers(value.body, membersMax) > membersMax) {
    const message = `The request body has too many members; at most ${membersMax} are allowed, in all objects and lists together.`;
    return refused('payload_too_large', message);
  }
  const parsed = schema.safeParse(value.body);
  if (parsed.success) return { kind: 'parsed', body: parsed.data };
  const [fault] = shapeFaults(parsed.error.issues);
  return refused('invalid_request', fault && faultText(fault));
}

type BodyRefusal = 'payload_too_large' | 'request_timeout' | 'invalid_request' | 'unsupported_media_type';

function octetsOf(
  req: IncomingMessage,
  { bytesMax, timeoutMs }: Parameters<typeof readBody>[1],
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
      if (bytes > droppedPerAllowed * bytesMax) {
        end('payload_too_large');
        return;
      }
      if (bytes <= bytesMax) chunks.push(chunk);
    }

    function end(found: Buffer | BodyRefusal): void {
      clearTimeout(timer);
      req.off('data', onData);
      resolve(found);
    }
  });
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

function jsonOf({ octets, type = '', encoding }: SentBody): ParsedBody {
  if (octets.length === 0) return { kind: 'parsed', body: {} };
  if (encoding !== undefined) {
    return refused('unsupported_media_type', 'The request body must not be compressed.');
  }
  if (!isJson(type)) return refused('unsupported_media_type');
  try {
    return { kind: 'parsed', body: JSON.parse(utf8.decode(octets)) };
  } catch {
    // The parser's message repeats a part of the body, which may be a secret.
    return refused('invalid_request', 'The request body is not valid JSON in UTF-8.');
  }
}

function isJson(contentType: string): boolean {
  return /^application\/json[ \t]*(;[ \t]*charset="?utf-8"?[ \t]*)?$/i.test(contentType);
}

function refused(code: BodyRefusal, message?: string): BodyRefused {
  return { kind: 'refused', response: errorResponse(code, message) };
}

function faultText(fault: ShapeFault): string {
  if (fault.kind === 'unknown') return unknownMember(fault);
  return fault.path.length === 0
    ? `The request body ${fault.what}.`
    : `The member ${nameOf(fault.path)} ${fault.what}.`;
}

/** The error omits a long name, which may be a secret in the wrong place. */
function unknownMember({ path, name, known }: Extract<ShapeFault, { kind: 'unknown' }>): string {
  const closest = closestName(name, known);
  if (closest !== undefined) return `The member ${nameOf(path)} is unknown; did you mean \`${closest}\`?`;
  const which = /^[\w-]{1,24}$/.test(name) ? `The member ${nameOf(path)} is unknown` : 'A member is unknown';
  return `${which}; known here: ${known.join(', ')}.`;
}
