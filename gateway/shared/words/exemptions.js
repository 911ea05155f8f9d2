import { exemptions } from '../../capabilities/lists/words.js';

/** @import { Exemption } from '../../capabilities/interfaces/words.ts' */

/** @type {readonly Exemption[]} */
const all = exemptions;

/** A few words for each. @param {object} grant a grant in a response */
export function exemptionWords(grant) {
  return all.filter(({ member }) => Object.hasOwn(grant, member)).map(({ words }) => words);
}
