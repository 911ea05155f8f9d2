import type { Conversation } from './converse.ts';
import { hangMs } from './converse.ts';
import { addressed, judgeForwarded, mayBeCut, presentedKey } from './judge-forwarded.ts';
import { judgeResponse } from './judge-response.ts';
import { type ReadRequest, readRequests } from './read-requests.ts';
import { onlyValue, readResponses } from './read-responses.ts';
import type { BackendSight } from './strict-backend.ts';

export interface Evidence {
  readonly conversation: Conversation;
  /** The requests that the backend received during the conversation. */
  readonly sight: BackendSight;
  readonly memory: Memory;
}

/** The judge's memory of earlier conversations. `judge` adds each conversation to the memory. */
export interface Memory {
  /** Every request id of the responses so far. */
  readonly requestIds: Set<string>;
  /**
   * The requests of each client address. If the gateway cuts a request off, the backend may record the request after the conversation has
   * ended.
   */
  readonly requests: Map<string, readonly ReadRequest[]>;
}

export interface Verdict {
  /** The statuses of the responses, in order. */
  readonly statuses: readonly number[];
  /** The number of complete requests that the backend received. */
  readonly admitted: number;
  readonly faults: readonly string[];
}

/**
 * The oracle: the bytes from the client, the bytes to the client and the requests at the backend must agree. The judge's parsers share no
 * code with the gateway.
 */
export function judge({ conversation, sight, memory }: Evidence): Verdict {
  const reading = readRequests(conversation.sent);
  const { requests, methods } = reading;
  const readBack = readResponses(conversation.received, methods);
  const { responses } = readBack;
  const faults = [...sight.faults];
  if (readBack.fault !== undefined) faults.push(`the client received ${readBack.fault}`);

  if (responses.length > methods.length) {
    faults.push(`${responses.length} responses to ${methods.length} requests (${reading.why})`);
  }
  responses.forEach((response, i) => {
    faults.push(...judgeResponse(response, requests[i]));
    const id = onlyValue(response.fields, 'x-request-id') ?? '';
    if (memory.requestIds.has(id)) faults.push(`the request id ${id} was used twice`);
    memory.requestIds.add(id);
  });
  faults.push(...judgeEnd(conversation, reading, readBack));

  memory.requests.set(conversation.address, requests);
  const answered = new Map(
    responses.map(({ fields }, i) => [onlyValue(fields, 'x-request-id'), requests[i]]),
  );
  for (const forwarded of sight.requests) {
    const id = onlyValue(forwarded.fields, 'x-request-id');
    const original = answered.get(id) ?? cutOff(forwarded, memory);
    // Each request of the client may reach the backend only once.
    answered.delete(id);
    if (original === undefined)
      faults.push(`the backend received what no client sent: ${JSON.stringify(forwarded)}`);
    else faults.push(...judgeForwarded(forwarded, original));
  }

  return {
    statuses: responses.map(({ status }) => status),
    admitted: sight.requests.filter(({ body }) => body !== undefined).length,
    faults,
  };
}

/**
 * Node's parser accepts a chunked body after an ignored `Upgrade` even if the chunks are faulty, for example if a chunk extension is too
 * long. Only the request timeout ends a request with a faulty body of this kind.
 */
function isChunkedBehindUpgrade({ fields }: ReadRequest): boolean {
  const names = fields.map(({ name }) => name);
  return names.includes('upgrade') && names.includes('transfer-encoding');
}

/** The client's request that the gateway forwarded and then cut off. The response to the client, if any, has another request id. */
function cutOff(forwarded: ReadRequest, { requests }: Memory): ReadRequest | undefined {
  if (forwarded.body !== undefined) return undefined;
  const { method, target, fields } = forwarded;
  const candidates = requests.get(onlyValue(fields, 'x-forwarded-for') ?? '') ?? [];
  const alike = candidates.filter(
    (one) => one.method === method && addressed(one).target === target && mayBeCut(one),
  );
  const keyId = onlyValue(fields, 'x-key-id');
  // A client may have sent the same request with several keys. If none of these requests has the forwarded key, the judge
  // uses the first request, and then reports a fault.
  return alike.find((one) => presentedKey(one) === keyId) ?? alike[0];
}

/** A connection may end when each complete request has its response, or after a response with `Connection: close`. */
function judgeEnd(
  { end }: Conversation,
  reading: ReturnType<typeof readRequests>,
  { responses, incomplete }: ReturnType<typeof readResponses>,
): string[] {
  if (end === 'hung') {
    return reading.requests.some(isChunkedBehindUpgrade)
      ? []
      : [`nothing happened for ${hangMs} ms (the input is ${reading.end}: ${reading.why})`];
  }
  if (end === 'answered') return incomplete ? ['the client received more than the responses'] : [];
  if (incomplete) return ['the connection ended within a response'];
  const last = responses.at(-1);
  if (last?.closes) return [];
  const wholeCount = reading.requests.filter(({ body }) => body !== undefined).length;
  if (responses.length < wholeCount) return ['the connection ended before the last response, unannounced'];
  if (reading.end === 'malformed') return [`no response with Connection: close refused ${reading.why}`];
  return reading.end === 'clean' ? ['the connection ended unannounced'] : [];
}
