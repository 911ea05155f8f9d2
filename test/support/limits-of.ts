/** Converts limits from the form of a plan to a list of windows: `limitsOf({ perMinute: 60, perDay: 1000 })`. */
export { toLimits as limitsOf } from '../../gateway/keys/limits/limit-fields.ts';
