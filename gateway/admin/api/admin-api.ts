import type { IncomingMessage } from 'node:http';
import type { Logger } from 'pino';
import { plainAddress } from '../../address-group.ts';
import type { AdminSettings, AdminToken } from '../../model.ts';
import { Shares } from '../../structures/shares.ts';
import { Turns } from '../../structures/turns.ts';
import { withinDeadline } from '../../structures/within-deadline.ts';
import type { Bounds } from '../../timeouts-and-sizes.ts';
import { type AdminResponse, errorResponse } from '../admin-response.ts';
import { identifyToken } from './identify-token.ts';
import { matchRoute } from './match-route.ts';
import { createMinuteCounts } from './minute-counts.ts';
import { parseQuery } from './query-parameters.ts';
import { readBody, type SentBody } from './request-body.ts';
import { answer, type RequestWithoutBody, type Route } from './route.ts';
import { type AskThread, nameOf } from './thread-routes.ts';
import { createWrongTokens } from './wrong-tokens.ts';

/** Where every path of the API begins. */
export const apiPrefix = '/api/v1';

/** Answers a request below `apiPrefix`. Never rejects. */
export type AdminApi = (req: IncomingMessage, requestId: string) => Promise<AdminResponse>;

/**
 * The path of a request to the admin API: whose token, which route, whether that token may, which parameters, how many
 * changes lately, the octets of its body, its turn, and then what the body says and the route's own response. Somebody
 * without a token learns nothing of the paths.
 *
 * A token has one turn at a time here, and one in the reading thread, so one that asks for much waits for itself.
 */
export function createAdminApi({
  routes,
  askThread,
  admin,
  log,
  nowMs,
  bounds,
}: {
  readonly routes: readonly Route[];
  readonly askThread: AskThread;
  /** The settings in force. */
  readonly admin: () => AdminSettings;
  readonly log: Pick<Logger, 'warn' | 'error'>;
  readonly nowMs: () => number;
  readonly bounds: Pick<
    Bounds,
    | 'adminWrongTokensPerMinuteMax'
    | 'adminGuessersMax'
    | 'adminWrongTokensIntervalMs'
    | 'adminRequestsMax'
    | 'adminResponseTimeoutMs'
    | 'adminChangesPerMinuteMax'
    | 'adminTokensCountedMax'
    | 'adminBodyBytesMax'
    | 'adminBodyMembersMax'
    | 'adminBodyTimeoutMs'
    | 'adminBodiesBytesMax'
    | 'adminTurnsMax'
    | 'adminTurnPauseMs'
    | 'readingTurnsMax'
    | 'adminLargeResponseBytes'
  >;
}): AdminApi {
  const wrongTokens = createWrongTokens({ log, nowMs, bounds });
  const changes = createMinuteCounts({
    perMinuteMax: bounds.adminChangesPerMinuteMax,
    namesMax: bounds.adminTokensCountedMax,
    nowMs,
  });
  /** By token: one that floods, or lets bodies drip in, leaves places to those who have to revoke a key meanwhile. */
  const underWay = new Shares(bounds.adminRequestsMax);
  const bodies = new Shares(bounds.adminBodiesBytesMax);
  const turns = new Turns({ holdersMax: bounds.adminTurnsMax, pauseMs: bounds.adminTurnPauseMs });
  const readingTurns = new Turns({ holdersMax: bounds.readingTurnsMax, pauseMs: bounds.adminTurnPauseMs });

  return async (req, requestId) => {
    const { tokens } = admin();
    if (tokens.length === 0) return errorResponse('no_tokens');
    const identity = identifyToken(req.headers.authorization, tokens);
    switch (identity.kind) {
      case 'missing':
        return errorResponse('missing_token', undefined, { 'WWW-Authenticate': realm });
      case 'wrong':
        return refuseToken(req);
      case 'identified':
    }
    const { token } = identity;
    if (!underWay.take(token.name, 1)) return busy();
    const waiting = { isGivenUp: false };
    const responding = respond(req, token, waiting).catch((bug) => {
      log.error({ err: bug, requestId }, 'a bug in the admin API');
      return errorResponse('internal');
    });
    // One that is given up goes on, if it has had its turn, and is counted until it ends.
    void responding.finally(() => underWay.give(token.name, 1));
    return withinDeadline(responding, bounds.adminResponseTimeoutMs, () => {
      waiting.isGivenUp = true;
      void responding.then(({ onWritten }) => onWritten?.());
      return busy();
    });
  };

  function refuseToken({ socket }: IncomingMessage): AdminResponse {
    const waitSeconds = wrongTokens.count(plainAddress(socket.remoteAddress ?? ''));
    if (waitSeconds !== undefined) {
      return errorResponse('rate_limited', undefined, { 'Retry-After': String(waitSeconds) });
    }
    const challenge = `${realm}, error="invalid_token"`;
    return errorResponse('invalid_token', undefined, { 'WWW-Authenticate': challenge });
  }

  async function respond(
    req: IncomingMessage,
    token: AdminToken,
    waiting: { readonly isGivenUp: boolean },
  ): Promise<AdminResponse> {
    const { method = '', url = '', headers } = req;
    const [target = '', search = ''] = url.slice(apiPrefix.length).split(/\?(.*)/s, 2);
    const match = matchRoute(routes, method, target);
    // A method that changes something is not offered to a token that may only read, whatever the path.
    const needs = match.kind === 'matched' ? match.route.needs : isReading(method) ? 'read' : 'write';
    if (needs === 'write' && token.may === 'read') {
      const challenge = `${realm}, error="insufficient_scope"`;
      return errorResponse('read_only_token', undefined, { 'WWW-Authenticate': challenge });
    }
    switch (match.kind) {
      case 'not_found':
        return errorResponse('not_found');
      case 'malformed':
        return errorResponse('invalid_request', 'The path has an invalid percent-encoding.');
      case 'method_not_allowed':
        return errorResponse('method_not_allowed', undefined, { Allow: match.allow });
      case 'matched':
    }
    const { route, params } = match;
    const parsed = parseQuery(route.query, search);
    if (parsed.kind === 'invalid') return errorResponse('invalid_request', parsed.message);
    const waitSeconds = route.needs === 'write' && !isReading(method) ? changes.count(token.name) : undefined;
    if (waitSeconds !== undefined) return tooManyChanges(waitSeconds);
    const request = { params, query: parsed.query, token, headers };
    if (route.body === undefined) return inTurn(route, request, undefined, waiting);
    // Before it is read: octets that wait for their turn are in memory.
    const { bodyBytesMax: bytesMax = bounds.adminBodyBytesMax } = route;
    if (!bodies.take(token.name, bytesMax)) return busy();
    try {
      const read = await readBody(req, { bytesMax, timeoutMs: bounds.adminBodyTimeoutMs });
      return read.kind === 'refused' ? read.response : await inTurn(route, request, read.sent, waiting);
    } finally {
      bodies.give(token.name, bytesMax);
    }
  }

  function inTurn(
    route: Route,
    request: RequestWithoutBody,
    sent: SentBody | undefined,
    waiting: { readonly isGivenUp: boolean },
  ): Promise<AdminResponse> {
    const { name } = request.token;
    if (!route.inThread) {
      return turns.take(name, () => (waiting.isGivenUp ? busy() : answer(route, request, sent, bounds)));
    }
    const { headers: _, ...handed } = request;
    const made = Promise.withResolvers<AdminResponse>();
    // A large response keeps the turn until it was written: one token has one in memory.
    const taken = readingTurns.take(name, async () => {
      if (waiting.isGivenUp) return made.resolve(busy());
      const response = await askThread({ route: nameOf(route), isFixed: route.isFixed, ...handed, sent });
      if (response.body.length < bounds.adminLargeResponseBytes) return made.resolve(response);
      await new Promise<void>((onWritten) => made.resolve({ ...response, onWritten }));
    });
    taken.catch(made.reject);
    return made.promise;
  }

  function tooManyChanges(waitSeconds: number): AdminResponse {
    const message = `A token may make ${bounds.adminChangesPerMinuteMax} changes a minute; retry after the time in the Retry-After header.`;
    return errorResponse('rate_limited', message, { 'Retry-After': String(waitSeconds) });
  }
}

const realm = 'Bearer realm="admin"';

function busy(): AdminResponse {
  return errorResponse('busy', undefined, { 'Retry-After': '1' });
}

function isReading(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS';
}
