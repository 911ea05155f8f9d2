// A browser imports this file, too.

/**
 * The credits of a key are kept only for some days, and only the last five of them, so they are no sum for a month.
 *
 * Shown with the usage of all keys in a month, from which operators make bills.
 */
export const creditUsageNote =
  'Units include those that "tollgate makegood" has given back. The page of a key and "tollgate keys show" list its last credits.';
