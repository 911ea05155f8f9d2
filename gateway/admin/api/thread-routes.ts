import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { type AdminResponse, errorResponse } from '../admin-response.ts';
import type { SentBody } from './request-body.ts';
import { answer, type RequestWithoutBody, type Route } from './route.ts';

/** A request to a route that runs in the reading thread: plain data. Token, path and query were dealt with before. */
export interface ThreadRequest extends Omit<RequestWithoutBody, 'headers'> {
  /** As `nameOf` has it. */
  readonly route: string;
  readonly isFixed: Route['isFixed'];
  readonly sent: SentBody | undefined;
}

/** Answers a request in the reading thread. Rejects with what a route throws. */
export type AskThread = (request: ThreadRequest) => Promise<AdminResponse>;

export function nameOf({ method, path }: Route): string {
  return `${method} ${path}`;
}

/** The end of `AskThread` that is in the thread. */
export function createThreadRoutes(
  routes: readonly Route[],
  bounds: Pick<Bounds, 'adminBodyMembersMax'>,
): AskThread {
  const byName = new Map(routes.map((route) => [nameOf(route), route]));
  return async ({ route: name, isFixed: _, sent, ...request }) => {
    const route = byName.get(name);
    if (route === undefined) return errorResponse('not_found');
    return answer(route, { ...request, headers: {} }, sent, bounds);
  };
}
