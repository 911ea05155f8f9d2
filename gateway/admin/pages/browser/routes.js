import { capabilityPages } from '../../../capabilities/lists/pages.js';
import { Changes } from './pages/changes.js';
import { Events } from './pages/events.js';
import { Key } from './pages/keys/key.js';
import { Keys } from './pages/keys/keys.js';
import { Usage } from './pages/keys/usage.js';
import { Now } from './pages/now.js';
import { Operations } from './pages/operations.js';
import { Plans } from './pages/plans.js';
import { Request } from './pages/request.js';
import { Settings } from './pages/settings.js';
import { Upstreams } from './pages/upstreams.js';

/** @import { Page } from '../../../capabilities/interfaces/pages.ts' */

/**
 * The component of each path in `page-paths.js`. A new page needs an entry in `page-paths.js`, an entry here, and a
 * module in `pages/`. The pages of capabilities are in `capabilities/lists/`.
 *
 * @type {Record<keyof typeof import('./page-paths.js').pagePaths, Page>}
 */
export const routes = {
  now: { component: Now, title: () => 'Now', nav: { text: 'Now', letter: 'n' } },
  keys: { component: Keys, title: () => 'Keys', nav: { text: 'Keys', letter: 'k' } },
  key: { component: Key, title: ({ id }) => id ?? '', parent: 'keys' },
  usage: { component: Usage, title: () => 'Usage', nav: { text: 'Usage', letter: 'm' } },
  plans: { component: Plans, title: () => 'Plans', nav: { text: 'Plans', letter: 'p' } },
  operations: { component: Operations, title: () => 'Operations', nav: { text: 'Operations', letter: 'o' } },
  upstreams: { component: Upstreams, title: () => 'Upstreams', nav: { text: 'Upstreams', letter: 'u' } },
  events: { component: Events, title: () => 'Events', nav: { text: 'Events', letter: 'e' } },
  request: { component: Request, title: ({ id }) => `Request ${id}`, parent: 'events' },
  ...capabilityPages,
  changes: { component: Changes, title: () => 'Changes', nav: { text: 'Changes', letter: 'c' } },
  settings: { component: Settings, title: () => 'Settings', nav: { text: 'Settings', letter: 's' } },
};
