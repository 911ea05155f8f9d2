import { hash } from 'node:crypto';
import * as z from 'zod';
import type { KeyDirectory } from '../../../keys/directory/key-directory.ts';
import { isoOf } from '../../../shared/schema/dates-and-durations.ts';
import { digestSecret, digestStart, issueSecret } from '../../../shared/secrets.ts';
import type { AdminResponse } from '../../admin-response.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import { type issueKeyBody, issueKeyWire } from '../../wires/keys/definitions.ts';
import {
  type ChangeRequest,
  type KeyChangeSources,
  noDirectory,
  type Refused,
  refused,
  storeFailed,
} from './change-sources.ts';
import { definitionResponse } from './definition.ts';
import { keptOfId } from './kept-of-id.ts';
import { termsFault } from './key-terms.ts';

/** The form of an `Idempotency-Key`: a value that the client chooses, and sends again when it repeats the request. */
const idempotencyKeyPattern = /^[!-~]{1,200}$/;

/** The data that Redis stores for the first request with an `Idempotency-Key`. */
const firstRequest = z.object({ request: z.string(), createdMs: z.number() });

/** `POST /keys` issues a key of the directory with its first secret. Only this response contains the secret. */
export function issueKeyRoute(sources: KeyChangeSources): Route {
  return defineRoute({
    ...issueKeyWire,
    needs: 'write',
    async respond({ body, ...request }) {
      const { settings, directory, nowMs } = sources;
      if (directory === undefined) return noDirectory().response;
      const fault = termsFault(body, settings());
      if (fault !== undefined) return refused('invalid_request', fault).response;
      if (body.expiresAt !== undefined && body.expiresAt <= nowMs()) {
        return refused('invalid_request', 'The member `expiresAt` must be in the future.').response;
      }
      if (settings().keys.has(body.id)) return taken(body.id).response;
      const begun = await begin(sources, directory, body, request);
      if (begun.kind === 'refused') return begun.response;
      // If the first request ended before its process wrote the key, the repeated request creates the key.
      const earlier = begun.kind === 'repeated' ? await findOwn(directory, body.id, begun) : undefined;
      return earlier ?? create(sources, directory, body, { ...request, ...begun });
    },
  });
}

interface Begun {
  /** `single` is a request without an `Idempotency-Key`. */
  readonly kind: 'single' | 'first' | 'repeated';
  /**
   * The creation time of the key. If a client repeats a request, the gateway recognizes the issued key by this creation
   * time.
   */
  readonly createdMs: number;
}

/** Stores the first request with an `Idempotency-Key` before anything else is written. */
async function begin(
  { nowMs, bounds }: KeyChangeSources,
  directory: KeyDirectory,
  body: z.output<typeof issueKeyBody>,
  { headers, token }: ChangeRequest,
): Promise<Begun | Refused> {
  const createdMs = nowMs();
  const idempotencyKey = headers['idempotency-key'];
  if (idempotencyKey === undefined) return { kind: 'single', createdMs };
  if (typeof idempotencyKey !== 'string' || !idempotencyKeyPattern.test(idempotencyKey)) {
    const message = 'The header field Idempotency-Key must be 1 to 200 visible characters of ASCII.';
    return refused('invalid_request', message);
  }
  const asked = { request: hash('sha256', JSON.stringify(body)), createdMs };
  const named = hash('sha256', `${token.name}\n${idempotencyKey}`);
  const reply = await directory.remember(named, JSON.stringify(asked), bounds.idempotencyKeptMs);
  if (reply.kind === 'away') return storeFailed({ ...reply, mayHaveRun: false });
  if (reply.kind === 'stored') return { kind: 'first', createdMs };
  const first = firstRequest.parse(JSON.parse(reply.value));
  if (first.request === asked.request) return { kind: 'repeated', createdMs: first.createdMs };
  return refused('conflict', 'The Idempotency-Key was used before, with another body.');
}

async function create(
  sources: KeyChangeSources,
  directory: KeyDirectory,
  { expiresAt, ...stated }: z.output<typeof issueKeyBody>,
  { author, kind, createdMs }: ChangeRequest & Begun,
): Promise<AdminResponse> {
  const { record } = sources;
  const secret = issueSecret();
  const issued = {
    digest: digestSecret(secret),
    createdMs,
    expiresMs: expiresAt,
  };
  const { id, ...terms } = stated;
  const definition = { ...stated, disabled: false, createdMs, secrets: [issued] };
  const change = {
    action: 'create',
    ...author,
    key: id,
    after: {
      ...terms,
      secret: digestStart(issued.digest),
      expiresAt: isoOf(expiresAt),
    },
  } as const;
  const isRepeatable = kind !== 'single';
  const reply = await directory.create(definition, isRepeatable ? 'once' : undefined);
  switch (reply.kind) {
    case 'written':
      record(change);
      return definitionResponse(reply.key, 201, { secret, kept: await keptOfId(sources, reply.key) });
    case 'taken': {
      // A concurrent request with the same `Idempotency-Key` may have created the key first.
      const own = isRepeatable ? await findOwn(directory, id, { createdMs }) : undefined;
      return own ?? taken(id).response;
    }
    case 'removed':
      return refused(
        'conflict',
        `The request with this Idempotency-Key has issued ${id}, and this key was deleted later. To issue the key again, send another Idempotency-Key.`,
      ).response;
    case 'away': {
      const failed = storeFailed(reply);
      if (reply.mayHaveRun) record({ ...change, error: failed.message });
      return failed.response;
    }
  }
}

/**
 * Returns the response to a repeated request if a key with this id exists. If another request has issued the key, the
 * response is a conflict.
 */
async function findOwn(
  directory: KeyDirectory,
  keyId: string,
  { createdMs }: Pick<Begun, 'createdMs'>,
): Promise<AdminResponse | undefined> {
  const found = await directory.read(keyId);
  switch (found.kind) {
    case 'absent':
      return undefined;
    case 'away':
      return storeFailed({ ...found, mayHaveRun: false }).response;
    case 'found':
      if (found.key.createdMs !== createdMs) return taken(keyId).response;
      return definitionResponse(found.key);
  }
}

function taken(keyId: string): Refused {
  return refused('conflict', `There is a key with the id ${keyId} already.`);
}
