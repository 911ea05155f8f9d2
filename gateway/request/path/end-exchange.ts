import { type ErrorCode, errors, type Refusal, type WholeResponse } from '../../shared/errors.ts';
import { asMutable, type Charged, type Exchange, isOverTls, withResults } from '../exchange.ts';
import { commonFields } from '../respond/common-fields.ts';
import { corsFields } from '../respond/cors-fields.ts';
import { refusalResponse } from '../respond/refusal-response.ts';
import type { Stations } from '../stations.ts';

/**
 * How a request ends. `forwarded`: the upstream's response has been written. `answered`: the gateway itself responds. `refused`: the
 * gateway sends an error. `client_gone`: the client has closed the connection.
 */
export type Ending =
  | { readonly kind: 'forwarded' }
  | { readonly kind: 'answered'; readonly exchange: Charged; readonly response: WholeResponse }
  | { readonly kind: 'refused'; readonly exchange: Charged; readonly refusal: Refusal }
  | { readonly kind: 'client_gone'; readonly exchange: Exchange };

export function answered(exchange: Charged, response: WholeResponse): Ending {
  return { kind: 'answered', exchange, response };
}

export function refused(exchange: Charged, refusal: Refusal): Ending {
  return { kind: 'refused', exchange, refusal };
}

/** Writes the response of an exchange, unless it is already written or the client is gone. */
export async function end(ending: Ending, stations: Stations): Promise<void> {
  switch (ending.kind) {
    case 'forwarded':
      return;
    case 'answered': {
      const { exchange, response } = ending;
      withResults(exchange, { status: response.status });
      const fieldsOf = () => [...gatewayFields(exchange), ...response.fields];
      return write(exchange, stations, () => ({ ...response, fields: fieldsOf() }));
    }
    case 'refused': {
      const { exchange, refusal } = ending;
      markFailed(exchange, refusal.code);
      asMutable(exchange).countedAs = refusal.countedAs;
      return write(exchange, stations, () => refusalResponse(refusal, gatewayFields(exchange)));
    }
    case 'client_gone':
      markClientGone(ending.exchange);
  }
}

/** Writes a response of the gateway at the end of this turn of the event loop, together with other responses. */
async function write(exchange: Exchange, { atTurnEnd }: Stations, make: () => WholeResponse): Promise<void> {
  const { req, res, endsConnection } = exchange;
  await new Promise<void>(atTurnEnd);
  if (res.isAnswerable) {
    if (endsConnection || !req.complete) res.shouldKeepAlive = false;
    res.answer(make());
  } else markClientGone(exchange);
}

/** Returns the header fields that the gateway adds to every response, as a flat list of names and values. */
export function gatewayFields({ id, req, snapshot, key, decision, offered }: Charged): string[] {
  return commonFields(id, {
    rateLimit: decision.rateLimit,
    policyText: key?.policyText,
    keyExpiry: key?.expiry,
    operationFields: offered?.fields,
    corsFields: corsFields(req.headers.origin, snapshot.corsOrigins),
    // A response without TLS must not have Strict-Transport-Security (RFC 6797 §7.2).
    hstsFields: snapshot.hstsFields && isOverTls(req) ? snapshot.hstsFields : undefined,
  });
}

/** Records the status, the code and the responsible party of an error. */
export function markFailed(exchange: Exchange, errorCode: ErrorCode): void {
  const { status, fault } = errors[errorCode];
  const open = asMutable(exchange);
  open.status = status;
  open.errorCode = errorCode;
  open.fault = fault;
}

/** Sets the outcome of a request whose client was gone before the end of the response. The status 499 comes from nginx. */
function markClientGone(exchange: Exchange): void {
  const errorCode = exchange.res.rejection?.code;
  const status = errorCode === undefined ? 499 : errors[errorCode].status;
  withResults(exchange, { status, errorCode, fault: 'client', countedAs: undefined });
}
