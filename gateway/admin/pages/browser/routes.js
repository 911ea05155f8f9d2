import { Changes } from './pages/changes.js';
import { Deliveries } from './pages/deliveries.js';
import { DeliveryPage } from './pages/delivery.js';
import { Events } from './pages/events.js';
import { Key } from './pages/key.js';
import { Keys } from './pages/keys.js';
import { Now } from './pages/now.js';
import { Operations } from './pages/operations.js';
import { Plans } from './pages/plans.js';
import { Upstreams } from './pages/upstreams.js';

/** @import { ComponentChildren } from 'preact' */

/** @import { PageProps } from './live.js' */

/**
 * The component of each path in `page-paths.js`. A new page needs an entry in `page-paths.js`, an entry here, and a
 * module in `pages/`. A page with `nav` is in the navigation. The key `g` and then the letter of the page open the
 * page.
 *
 * @type {Record<keyof typeof import('./page-paths.js').pagePaths, {
 *   component: (props: PageProps) => ComponentChildren,
 *   title: (params: Record<string, string>) => string,
 *   nav?: { text: string, letter: string },
 * }>}
 */
export const routes = {
  now: { component: Now, title: () => 'Now', nav: { text: 'Now', letter: 'n' } },
  keys: { component: Keys, title: () => 'Keys', nav: { text: 'Keys', letter: 'k' } },
  key: { component: Key, title: ({ id }) => id ?? '' },
  plans: { component: Plans, title: () => 'Plans', nav: { text: 'Plans', letter: 'p' } },
  operations: { component: Operations, title: () => 'Operations', nav: { text: 'Operations', letter: 'o' } },
  upstreams: { component: Upstreams, title: () => 'Upstreams', nav: { text: 'Upstreams', letter: 'u' } },
  events: { component: Events, title: () => 'Events', nav: { text: 'Events', letter: 'e' } },
  deliveries: {
    component: Deliveries,
    title: () => 'Deliveries',
    nav: { text: 'Deliveries', letter: 'd' },
  },
  delivery: { component: DeliveryPage, title: ({ id }) => id ?? '' },
  changes: { component: Changes, title: () => 'Changes', nav: { text: 'Changes', letter: 'c' } },
};
