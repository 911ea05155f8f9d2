import type { Settings } from '../../model.ts';
import { jsonResponse } from '../admin-response.ts';
import { createApiDocument } from './api-document.ts';
import { plansView } from './plans-view.ts';
import { noQuery } from './query-parameters.ts';
import { defineRoute, type Route } from './route.ts';
import { settingsText } from './settings-view.ts';

/** What the routes read. */
export interface ApiSources {
  /** The settings in force. */
  readonly settings: () => Settings;
}

/**
 * Every route of the admin API. A new one is an entry here, and in `openapi.yaml`, which a test holds against the responses
 * and against this list.
 */
export function createRoutes({ settings }: ApiSources): readonly Route[] {
  const apiDocument = createApiDocument();
  return [
    defineRoute({
      method: 'GET',
      path: '/settings',
      needs: 'read',
      query: noQuery,
      respond: async () => ({ status: 200, body: await settingsText(settings()) }),
    }),
    defineRoute({
      method: 'GET',
      path: '/plans',
      needs: 'read',
      query: noQuery,
      respond: () => jsonResponse(plansView(settings())),
    }),
    defineRoute({
      method: 'GET',
      path: '/openapi.json',
      needs: 'read',
      query: noQuery,
      respond: () => ({ status: 200, body: apiDocument() }),
    }),
  ];
}
