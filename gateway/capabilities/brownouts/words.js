import { utcMinute } from '../../shared/words/figures.js';

// The words of brownouts, which schemas, commands and pages share.

/** @import { CountedRefusal, DeprecationNotes, Exemption } from '../interfaces/words.ts' */

/** @satisfies {CountedRefusal} */
export const brownoutRefusals = /** @type {const} */ ({
  name: 'brownout',
  member: 'brownouts',
  title: 'Brownouts',
  about: 'The requests of the key that brownouts refused; absent if there were none.',
  aboutRequests: 'Whole hours are counted.',
});

/** @satisfies {Exemption} */
export const brownoutExemption = /** @type {const} */ ({
  name: 'brownouts',
  member: 'noBrownouts',
  words: 'no brownouts',
  allows: 'call operations during their brownouts',
  option: '--no-brownouts',
  aboutOption: 'let the key call deprecated operations during their brownouts',
});

/** @type {DeprecationNotes} */
export const brownoutNotes = ({ brownouts = [] }) =>
  brownouts.map(({ from, every, for: length }) => {
    const often = every === undefined ? '' : ` every ${every}`;
    return `brownout for ${length}${often} from ${utcMinute(from)}`;
  });
