import { Deliveries } from './deliveries.js';
import { DeliveryPage } from './delivery.js';

/** @import { Page } from '../../interfaces/pages.ts' */

/** @satisfies {Record<keyof typeof import('../words.js').webhooksPaths, Page>} */
export const webhooksPages = {
  deliveries: {
    component: Deliveries,
    title: () => 'Deliveries',
    nav: { text: 'Deliveries', letter: 'd' },
  },
  delivery: {
    component: DeliveryPage,
    title: (/** @type {Record<string, string>} */ { id }) => id ?? '',
    parent: 'deliveries',
  },
};
