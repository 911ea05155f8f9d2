import type { IncomingHttpHeaders } from 'node:http';
import type * as z from 'zod';
import type { Wire } from '../../shared/http/wire.ts';
import type { AdminToken, Author } from '../../shared/model.ts';
import { noQuery, type QuerySchema } from '../../shared/schema/query-parameters.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { AdminResponse } from '../admin-response.ts';
import { parseBody, type SentBody } from './request-body.ts';

/** One method of one path of the admin API. */
export interface Route<Query extends QuerySchema = QuerySchema, Body extends z.ZodType = z.ZodType>
  extends Pick<Wire<Wire['method'], string, Query, Body>, 'method' | 'path' | 'query' | 'body'> {
  /** The permission that a token needs. */
  readonly needs: AdminToken['may'];
  /** By default `bounds.adminBodyBytesMax` and `adminBodyMembersMax`. */
  readonly bodyBytesMax?: number;
  readonly bodyMembersMax?: number;
  /**
   * True for a route that reads many keys, recorded minutes or recorded changes. It runs in the reading thread, so it does not delay
   * customers' requests. There it has its own data sources, and does not get the header fields and the author of the request.
   */
  readonly inThread?: true;
  /** True for a route without parameters whose response depends only on the settings. The response is cached for a short time. */
  readonly isFixed?: true;
  /** True for a route whose response must be complete. While Redis is away, the response is 503. */
  readonly isExact?: true;
  /** True for a route whose response has counts of all processes. Each request asks for a flush of the fleet. */
  readonly readsCounts?: true;
  /**
   * True for a route that waits for other processes. It takes no turn, because it keeps the event loop busy for less than a millisecond.
   */
  readonly waits?: true;
  /** An exception is logged, and the client gets 500. */
  respond(request: RouteRequest<Query, Body>): AdminResponse | Promise<AdminResponse>;
}

interface RouteRequest<Query extends QuerySchema, Body extends z.ZodType> {
  /** For each parameter of the path template: the decoded segment of the path. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: z.output<Query>;
  /** The validated body; undefined for a route without a body. */
  readonly body: z.output<Body>;
  readonly token: AdminToken;
  /** The author of the change, for the record of changes. */
  readonly author: Author;
  readonly headers: IncomingHttpHeaders;
}

export type RequestWithoutBody = Omit<RouteRequest<QuerySchema, z.ZodType>, 'body'>;

/** Parses the body if the route has a body schema, and makes the response. */
export async function answer(
  route: Route,
  request: RequestWithoutBody,
  sent: SentBody | undefined,
  bounds: Bounds,
): Promise<AdminResponse> {
  if (route.body === undefined || sent === undefined) return route.respond({ ...request, body: undefined });
  const parsed = parseBody(sent, route.body, route.bodyMembersMax ?? bounds.adminBodyMembersMax);
  return parsed.kind === 'refused' ? parsed.response : route.respond({ ...request, body: parsed.body });
}

/** Infers the types of the query and the body that `respond` gets. A route without `query` has no query parameters. */
export function defineRoute<
  Query extends QuerySchema = typeof noQuery,
  Body extends z.ZodType = z.ZodUndefined,
>(route: Omit<Route<Query, Body>, 'query'> & Partial<Pick<Route<Query, Body>, 'query'>>): Route {
  return { query: noQuery, ...route } as unknown as Route;
}

export type Routed =
  | { readonly kind: 'routed'; readonly route: Route; readonly params: Readonly<Record<string, string>> }
  | { readonly kind: 'method_not_allowed'; readonly allow: string }
  | { readonly kind: 'not_found' }
  /** The result when a segment of the path is not valid percent-encoded UTF-8. */
  | { readonly kind: 'malformed' };

/** A HEAD request uses the route of GET. @param path below `/api/v1`, without the query */
export function routeRequest(routes: readonly Route[], method: string, path: string): Routed {
  const segments = path.split('/');
  const there = routes.filter((route) => isMatch(route.path.split('/'), segments));
  const route = there.find((one) => one.method === (method === 'HEAD' ? 'GET' : method));
  if (route === undefined) {
    if (there.length === 0) return { kind: 'not_found' };
    const methods = there.flatMap((one) => (one.method === 'GET' ? ['GET', 'HEAD'] : [one.method]));
    return { kind: 'method_not_allowed', allow: [...new Set(methods)].join(', ') };
  }
  try {
    return { kind: 'routed', route, params: paramsOf(route.path.split('/'), segments) };
  } catch {
    return { kind: 'malformed' };
  }
}

function isMatch(template: readonly string[], segments: readonly string[]): boolean {
  if (template.length !== segments.length) return false;
  return template.every((part, i) => (isName(part) ? segments[i] !== '' : part === segments[i]));
}

/** @throws a URIError */
function paramsOf(template: readonly string[], segments: readonly string[]): Record<string, string> {
  const named = template.flatMap((part, i) =>
    isName(part) ? [[part.slice(1, -1), decodeURIComponent(segments[i] ?? '')]] : [],
  );
  return Object.fromEntries(named);
}

function isName(part: string): boolean {
  return part.startsWith('{');
}
