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
 * @returns undefined where it names none beyond its options, as nearly always
 */
export function namedInConnection(connection: string): ReadonlySet<string> | undefined {
  const value = connection.toLowerCase();
  if (value === '' || value === 'keep-alive' || value === 'close') return undefined;
  return new Set(value.split(',').map((name) => name.trim()));
}
