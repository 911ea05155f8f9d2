import type { IncomingHttpHeaders } from 'node:http';
import type * as z from 'zod';
import type { AdminToken } from '../../model.ts';
import type { AdminResponse } from '../admin-response.ts';
import type { QuerySchema } from './query-parameters.ts';

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
  /** How long that may be; `bounds.adminBodyBytesMax` unless given. */
  readonly bodyBytesMax?: number;
  /** It looks at many keys: such requests are done one after the other, so that many of them do not hold up those of keys. */
  readonly isLarge?: boolean;
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

/** Gives `respond` the types of its query and its body. */
export function defineRoute<Query extends QuerySchema, Body extends z.ZodType>(
  route: Route<Query, Body>,
): Route {
  return route as unknown as Route;
}
