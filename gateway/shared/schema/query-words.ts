/** The words that parameters of requests and options of commands accept. */

/** From which a list of keys can select one. */
export const keyStates = [
  'ok',
  'near',
  'limited',
  'banned',
  'disabled',
  'expired',
  'no_secret',
  'unused',
  'unknown',
] as const;

export type KeyState = (typeof keyStates)[number];

/** Refused or offered requests of the last 24 hours, last request, or id. */
export const keySorts = ['refused', 'offered', 'lastSeen', 'id'] as const;

export type KeySort = (typeof keySorts)[number];

/** Periods of UTC. */
export const usageSteps = ['minute', 'hour', 'day', 'month'] as const;

export type UsageStep = (typeof usageSteps)[number];

/** Why a secret is not valid, although a client uses it. */
export const deadStates = [
  'leaked',
  'revoked',
  'disabled',
  'expired',
  'no_plan',
  'removed',
  'unknown',
] as const;

export type DeadState = (typeof deadStates)[number];
