// The names of the guard's events, for the configuration and pages.

export const guardWebhookTypes = /** @type {const} */ (['plan.reverted']);

export const guardChartMarks = {
  plan_reverted: 'plan reverted',
  plan_retried: 'plan retried',
};
