/** Fields of one connection, by lower-case name (RFC 9110 §7.6.1). `Transfer-Encoding` is framing and judged apart. */
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
 * The further fields that `Connection` makes hop-by-hop, by lower-case name.
 *
 * @param fields flat name, value, …
 * @returns undefined where it names none beyond its options, as nearly always
 */
export function namedInConnection(fields: readonly string[]): ReadonlySet<string> | undefined {
  const value = connectionOf(fields).toLowerCase();
  if (value === '' || value === 'keep-alive' || value === 'close') return undefined;
  // Names have no space or tab in them; any other whitespace of Unicode is none of HTTP's (RFC 9110 §5.6.3).
  return new Set(value.split(/[,\t ]/));
}

/** All `Connection` fields are one list (RFC 9110 §5.3). */
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
