import { randomUUID } from 'node:crypto';
import { type ErrorCode, errors } from '../errors.ts';
import type { Standing } from '../model.ts';
import { ownFields } from './own-fields.ts';
import { type RefusalAnswer, refusalAnswer } from './refusal.ts';

/** What the parser or a limit of the listener refused before there was a request. */
export interface Rejection {
  readonly code: ErrorCode;
  readonly message: string;
  readonly peerAddress: string;
}

/** The answer to a rejection, with an id of its own, and its line for the access log. */
export function answerRejection(
  { code, message, peerAddress }: Rejection,
  standing: Standing,
): { readonly answer: RefusalAnswer; readonly line: Record<string, string | number> } {
  const requestId = randomUUID();
  const answer = refusalAnswer({ code, message }, ownFields(requestId, standing, undefined));
  const line = {
    requestId,
    status: answer.status,
    error: code,
    fault: errors[code].fault,
    address: peerAddress,
    window: standing.inForce.name,
    limit: standing.inForce.limit,
    remaining: standing.inForce.remaining,
  };
  return { answer, line };
}
