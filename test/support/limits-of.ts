/** Converts limits from the form of a plan: `limitsOf({ perMinute: 60, perDay: 1000 })`. */
export { toLimits as limitsOf } from '../../gateway/keys/limit-fields.ts';
