import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { type AdminResponse, errorResponse, storeUnavailable } from '../admin-response.ts';
import { noteWhile, type Outage, withMissing } from './missing-data.ts';
import type { SentBody } from './request-body.ts';
import { answer, type RequestWithoutBody, type Route } from './route.ts';

/** A request to a route in the reading thread, as plain data. The main thread has already checked token, path and query. */
export interface ThreadRequest extends Omit<RequestWithoutBody, 'headers' | 'author'> {
  /** The name of the route, from `nameOf`. */
  readonly route: string;
  readonly isFixed: Route['isFixed'];
  readonly sent: SentBody | undefined;
}

/** Rejects with the error that the route throws. */
export type AskThread = (request: ThreadRequest) => Promise<AdminResponse>;

export function nameOf({ method, path }: Route): string {
  return `${method} ${path}`;
}

export function createThreadRoutes(
  routes: readonly Route[],
  outage: () => Promise<Outage>,
  bounds: Bounds,
): AskThread {
  const byName = new Map(routes.map((route) => [nameOf(route), route]));
  return async ({ route: name, isFixed: _, sent, ...request }) => {
    const route = byName.get(name);
    if (route === undefined) return errorResponse('not_found');
    const respond = () =>
      answer(route, { ...request, headers: {}, author: { by: request.token.name } }, sent, bounds);
    const { response, what } = await noteWhile(respond);
    if (what.length === 0 || response.status !== 200) return response;
    return route.isExact ? storeUnavailable() : withMissing(response, what, await outage());
  };
}
