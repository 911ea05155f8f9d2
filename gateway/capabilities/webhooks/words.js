/** The paths of the pages about webhooks. `page/pages.js` has the component of each page. */
export const webhooksPaths = {
  deliveries: '/deliveries',
  delivery: '/deliveries/{id}',
};
