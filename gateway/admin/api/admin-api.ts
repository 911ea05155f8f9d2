import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Logger } from 'pino';
import type { RequestFlush } from '../../fleet/flush/flush-fleet.ts';
import { plainAddress } from '../../shared/addresses/address-group.ts';
import type { AdminSettings, AdminToken, Author } from '../../shared/model.ts';
import { parseQuery } from '../../shared/schema/query-parameters.ts';
import { Shares } from '../../shared/structures/shares.ts';
import { Turns, type Waiting } from '../../shared/structures/turns.ts';
import { withinDeadline } from '../../shared/structures/within-deadline.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { type AdminResponse, apiPrefix, errorResponse } from '../admin-response.ts';
import { ranByFault, ranByField, ranBySchema } from '../wires/ran-by.ts';
import { type Outage, withOutage } from './missing-data.ts';
import { type ReadBody, readBody } from './request-body.ts';
import { answer, type RequestWithoutBody, type Route, routeRequest } from './route.ts';
import { type AskThread, nameOf } from './thread-routes.ts';
import { authenticate } from './tokens/authenticate.ts';
import { createMinuteCounts } from './tokens/minute-counts.ts';
import { createWrongTokens } from './tokens/wrong-tokens.ts';

/** Answers a request below `apiPrefix`. The promise never rejects. */
export type AdminApi = (req: IncomingMessage, requestId: string) => Promise<AdminResponse>;

export interface AdminApiOptions {
  readonly routes: readonly Route[];
  readonly askThread: AskThread;
  readonly requestFlush: RequestFlush;
  readonly outage: () => Outage;
  readonly admin: () => AdminSettings;
  readonly log: Pick<Logger, 'warn' | 'error'>;
  readonly nowMs: () => number;
  readonly bounds: Bounds;
}

/**
 * Handles a request to the admin API in these steps: token, route, permission, query parameters, rate of changes,
 * turn, body, and the route's response. A client without a token cannot find out which paths exist.
 *
 * This thread and the reading thread each handle one request of a token at a time. Many requests of a token therefore
 * delay only other requests of the same token.
 *
 * The steps are nested functions, because they share the counts and turns.
 */
export function createAdminApi({
  routes,
  askThread,
  requestFlush,
  outage,
  admin,
  log,
  nowMs,
  bounds,
}: AdminApiOptions): AdminApi {
  const wrongTokens = createWrongTokens({ log, nowMs, bounds });
  const changes = createMinuteCounts({
    perMinuteMax: bounds.adminChangesPerMinuteMax,
    namesMax: bounds.adminTokensCountedMax,
    nowMs,
  });
  /**
   * Limits the concurrent requests, in total and for each token. A token that sends many requests or slow bodies
   * cannot block other tokens.
   */
  const underWay = new Shares(bounds.adminRequestsMax);
  const pauseMs = bounds.adminTurnPauseMs;
  const turns = new Turns({
    holdersMax: bounds.adminTurnsMax,
    pauseMs,
    restFactor: bounds.adminRestFactor,
    aheadMaxMs: bounds.adminAheadMaxMs,
  });
  const readingTurns = new Turns({ holdersMax: bounds.readingTurnsMax, pauseMs });

  return async (req, requestId) => {
    const { tokens } = admin();
    if (tokens.length === 0) return errorResponse('no_tokens');
    const authenticated = authenticate(req.headers.authorization, tokens);
    switch (authenticated.kind) {
      case 'missing':
        return errorResponse('missing_token', undefined, { 'WWW-Authenticate': realm });
      case 'wrong':
        return refuseToken(req);
      case 'authenticated':
    }
    const { token } = authenticated;
    if (!underWay.take(token.name, 1)) return busy();
    const waiting: Waiting = {};
    const responding = respond(req, token, waiting).catch((bug) => {
      log.error({ err: bug, requestId }, 'a bug in the admin API');
      return errorResponse('internal');
    });
    const giveUp = () => waiting.leave?.();
    req.socket.once('close', giveUp);
    // A request that timed out during its turn still runs, and counts as a concurrent request until it ends.
    void responding.finally(() => {
      req.socket.off('close', giveUp);
      underWay.give(token.name, 1);
    });
    return withinDeadline(responding, bounds.adminResponseTimeoutMs, () => {
      giveUp();
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

  async function respond(req: IncomingMessage, token: AdminToken, waiting: Waiting): Promise<AdminResponse> {
    const { method = '', url = '', headers } = req;
    const [target = '', search = ''] = url.slice(apiPrefix.length).split(/\?(.*)/s, 2);
    const routed = routeRequest(routes, method, target);
    // A token that may only read gets 403 for every method that changes something, also on unknown paths.
    const needs = routed.kind === 'routed' ? routed.route.needs : isReading(method) ? 'read' : 'write';
    if (needs === 'write' && token.may === 'read') {
      const challenge = `${realm}, error="insufficient_scope"`;
      return errorResponse('read_only_token', undefined, { 'WWW-Authenticate': challenge });
    }
    switch (routed.kind) {
      case 'not_found':
        return errorResponse('not_found');
      case 'malformed':
        return errorResponse('invalid_request', 'The path has an invalid percent-encoding.');
      case 'method_not_allowed':
        return errorResponse('method_not_allowed', undefined, { Allow: routed.allow });
      case 'routed':
    }
    const { route, params } = routed;
    const parsed = parseQuery(route.query, search);
    if (parsed.kind === 'invalid') return errorResponse('invalid_request', parsed.message);
    const waitSeconds = route.needs === 'write' && !isReading(method) ? changes.count(token.name) : undefined;
    if (waitSeconds !== undefined) return tooManyChanges(waitSeconds);
    const author = isReading(method) ? { by: token.name } : authorOf(token, headers);
    if (author === undefined) return errorResponse('invalid_request', ranByFault);
    const request = { params, query: parsed.query, token, author, headers };
    if (route.readsCounts) requestFlush();
    const response = route.waits
      ? await answerHere(req, route, request)
      : await (route.inThread
          ? answerInThread(req, route, request, waiting)
          : turns.take(token.name, () => answerHere(req, route, request), waiting));
    return response === undefined ? busy() : withOutage(response, outage);
  }

  async function answerHere(
    req: IncomingMessage,
    route: Route,
    request: RequestWithoutBody,
  ): Promise<AdminResponse> {
    const read = await bodyOf(req, route);
    return read.kind === 'refused' ? read.response : answer(route, request, read.sent, bounds);
  }

  async function answerInThread(
    req: IncomingMessage,
    route: Route,
    { headers: _, author: __, ...request }: RequestWithoutBody,
    waiting: Waiting,
  ): Promise<AdminResponse | undefined> {
    const made = Promise.withResolvers<AdminResponse | undefined>();
    const turn = readingTurns.take(
      request.token.name,
      async () => {
        const read = await bodyOf(req, route);
        if (read.kind === 'refused') return made.resolve(read.response);
        const { isFixed } = route;
        const response = await askThread({ route: nameOf(route), isFixed, ...request, sent: read.sent });
        if (response.body.length < bounds.adminLargeResponseBytes) return made.resolve(response);
        // The turn lasts until the response is written, so only one large response of a token is in memory.
        await new Promise<void>((onWritten) => made.resolve({ ...response, onWritten }));
      },
      waiting,
    );
    turn.then(() => made.resolve(undefined), made.reject);
    return made.promise;
  }

  /**
   * Reads the body during the request's turn. Before its turn, a request has at most two packets of its body in
   * memory.
   */
  async function bodyOf(req: IncomingMessage, { body, bodyBytesMax }: Route): Promise<ReadBody> {
    if (body === undefined) return { kind: 'read', sent: undefined };
    const bytesMax = bodyBytesMax ?? bounds.adminBodyBytesMax;
    return readBody(req, { bytesMax, timeoutMs: bounds.adminBodyTimeoutMs });
  }

  function tooManyChanges(waitSeconds: number): AdminResponse {
    const message = `A token may make ${bounds.adminChangesPerMinuteMax} changes a minute; retry after the time in the Retry-After header.`;
    return errorResponse('rate_limited', message, { 'Retry-After': String(waitSeconds) });
  }
}

/** Returns undefined if the header field `Tollgate-Ran-By` is not valid. */
function authorOf({ name: by }: AdminToken, headers: IncomingHttpHeaders): Author | undefined {
  const stated = headers[ranByField.toLowerCase()];
  if (stated === undefined) return { by };
  const parsed = ranBySchema.safeParse(stated);
  return parsed.success ? { by, ranBy: parsed.data } : undefined;
}

const realm = 'Bearer realm="admin"';

function busy(): AdminResponse {
  return errorResponse('busy', undefined, { 'Retry-After': '1' });
}

function isReading(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS';
}
