/**
 * Lower-case names of fields that the gateway does not forward: hop-by-hop fields (RFC 9110 §7.6.1), `Proxy-Authenticate`
 * (§11.7.1), and `Trailer`, because trailers are not forwarded. Other code handles `Transfer-Encoding`.
 */
export const hopByHopFields = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'te',
  'trailer',
  'upgrade',
] as const;

/**
 * Returns the lower-case names of the fields that `Connection` declares as hop-by-hop (RFC 9110 §7.6.1).
 *
 * @param fields flat name, value, …
 * @returns undefined when `Connection` lists no field, as in nearly all messages
 */
export function namedInConnection(fields: readonly string[]): ReadonlySet<string> | undefined {
  const value = connectionOf(fields).toLowerCase();
  if (value === '' || value === 'keep-alive' || value === 'close') return undefined;
  // `trim` would also remove other characters. Only space and tab are whitespace in lists (RFC 9110 §5.6.3).
  return new Set(value.split(/[,\t ]/));
}

/** Joins the values of all `Connection` lines into one list (RFC 9110 §5.3). */
function connectionOf(fields: readonly string[]): string {
  let connection = '';
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] ?? '';
    if (name.length !== 10 || name.toLowerCase() !== 'connection') continue;
    const value = fields[i + 1] ?? '';
    connection = connection === '' ? value : `${connection},${value}`;
  }
  return connection;
}
