/**
 * Fields that are not forwarded, by lower-case name: fields of one connection (RFC 9110 §7.6.1), `Proxy-Authenticate` (§11.7.1), and
 * `Trailer`, because trailers are not forwarded. `Transfer-Encoding` is handled with the framing.
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
 * The lower-case names of fields that `Connection` makes hop-by-hop (RFC 9110 §7.6.1).
 *
 * @param fields flat name, value, …
 * @returns undefined when there are none, as in nearly all messages
 */
export function namedInConnection(fields: readonly string[]): ReadonlySet<string> | undefined {
  const value = connectionOf(fields).toLowerCase();
  if (value === '' || value === 'keep-alive' || value === 'close') return undefined;
  // Only space and tab are whitespace in lists (RFC 9110 §5.6.3), unlike in `trim`.
  return new Set(value.split(/[,\t ]/));
}

/** The values of all `Connection` lines as one list (RFC 9110 §5.3). */
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
