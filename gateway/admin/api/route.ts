import type { IncomingHttpHeaders } from 'node:http';
import type * as z from 'zod';
import type { AdminToken } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { AdminResponse } from '../admin-response.ts';
import type { QuerySchema } from './query-parameters.ts';
import { parseBody, type SentBody } from './request-body.ts';

/** One method of one path of the admin API. */
export interface Route<Query extends QuerySchema = QuerySchema, Body extends z.ZodType = z.ZodType> {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Below `/api/v1`; `{id}` stands for one segment. */
  readonly path: string;
  /** What a token must be allowed to do. */
  readonly needs: AdminToken['may'];
  /** Its query parameters; any other is refused. */
  readonly query: Query;
  /** Its JSON body; absent: whatever is sent is not read. */
  readonly body?: Body;
  /** How long that may be, and how many members it may have; `bounds.adminBodyBytesMax` and `adminBodyMembersMax` unless given. */
  readonly bodyBytesMax?: number;
  readonly bodyMembersMax?: number;
  /**
   * It reads many keys, minutes or lines: it runs in the reading thread, which has the same list of routes and sources of its
   * own, and delays no request of a customer. It gets no header fields there.
   */
  readonly inThread?: true;
  /** Its response depends on the settings alone: it is made once for them, and kept for a moment. Only without parameters. */
  readonly isFixed?: true;
  /** What it throws is logged, and answered 500. */
  respond(request: RouteRequest<Query, Body>): AdminResponse | Promise<AdminResponse>;
}

export interface RouteRequest<Query extends QuerySchema, Body extends z.ZodType> {
  /** The segments that stand for the names in the path, decoded. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: z.output<Query>;
  /** Undefined where the route has none. */
  readonly body: z.output<Body>;
  readonly token: AdminToken;
  readonly headers: IncomingHttpHeaders;
}

/** What a route is given beside its body. */
export type RequestWithoutBody = Omit<RouteRequest<QuerySchema, z.ZodType>, 'body'>;

/** Parses the body, where the route has one, and makes the response. */
export async function answer(
  route: Route,
  request: RequestWithoutBody,
  sent: SentBody | undefined,
  bounds: Pick<Bounds, 'adminBodyMembersMax'>,
): Promise<AdminResponse> {
  if (route.body === undefined || sent === undefined) return route.respond({ ...request, body: undefined });
  const parsed = parseBody(sent, route.body, route.bodyMembersMax ?? bounds.adminBodyMembersMax);
  return parsed.kind === 'refused' ? parsed.response : route.respond({ ...request, body: parsed.body });
}

/** Gives `respond` the types of its query and its body. */
export function defineRoute<Query extends QuerySchema, Body extends z.ZodType>(
  route: Route<Query, Body>,
): Route {
  return route as unknown as Route;
}
