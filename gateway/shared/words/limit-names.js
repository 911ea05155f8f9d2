import { figure } from './figures.js';

// A browser imports this file, too.

/** @typedef {Readonly<Record<string, any>> & { readonly groups?: Readonly<Record<string, object>> | undefined }} LimitsByField */

/**
 * A limit's policy in `RateLimit`: `minute`, or `reports-minute` for a group.
 *
 * @param {string} window
 * @param {string | undefined} group
 */
export function policyName(window, group) {
  return group === undefined ? window : `${group}-${window}`;
}

/** The name of a group may contain `-`, and the name of a window does not. @param {string} policy */
export function windowIn(policy) {
  return policy.slice(policy.lastIndexOf('-') + 1);
}

/** @param {string} policy */
export function groupIn(policy) {
  return policy.includes('-') ? policy.slice(0, policy.lastIndexOf('-')) : undefined;
}

/** "minute", or "minute for the group reports". @param {string} policy */
export function windowText(policy) {
  const group = groupIn(policy);
  return group === undefined ? policy : `${windowIn(policy)} for the group ${group}`;
}

/** With an article: "a minute", "an hour", "a minute for the group reports". @param {string} policy */
export function per(policy) {
  return `${windowIn(policy) === 'hour' ? 'an' : 'a'} ${windowText(policy)}`;
}

/** "60 a minute, 1,000 a day, 5 a minute for the group reports". @param {LimitsByField} limits */
export function limitsInWords({ groups = {}, ...limits }) {
  const texts = (/** @type {object} */ fields, /** @type {string} */ prefix) =>
    Object.entries(fields).flatMap(([name, limit]) =>
      name === 'operations' ? [] : `${figure(limit)} ${per(prefix + name.slice('per'.length).toLowerCase())}`,
    );
  const ofGroups = Object.entries(groups).flatMap(([name, fields]) => texts(fields, `${name}-`));
  return [...texts(limits, ''), ...ofGroups].join(', ');
}
