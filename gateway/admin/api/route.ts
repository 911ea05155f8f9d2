import type * as z from 'zod';
import type { AdminToken } from '../../model.ts';
import type { AdminResponse } from '../admin-response.ts';
import type { QuerySchema } from './query-parameters.ts';

/** One method of one path of the admin API. */
export interface Route<Schema extends QuerySchema = QuerySchema> {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Below `/api/v1`; `{id}` stands for one segment. */
  readonly path: string;
  /** What a token must be allowed to do. */
  readonly needs: AdminToken['may'];
  /** Its query parameters; any other is refused. */
  readonly query: Schema;
  /** What it throws is logged, and answered 500. */
  respond(request: RouteRequest<Schema>): AdminResponse | Promise<AdminResponse>;
}

export interface RouteRequest<Schema extends QuerySchema> {
  /** The segments that stand for the names in the path, decoded. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: z.output<Schema>;
  readonly token: AdminToken;
}

/** Gives `respond` the types of its query. */
export function defineRoute<Schema extends QuerySchema>(route: Route<Schema>): Route {
  return route as unknown as Route;
}
