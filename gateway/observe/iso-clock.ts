/**
 * Writes instants (epoch ms) as ISO 8601 in UTC, and remembers the last one: under load dozens of lines share a
 * millisecond, and a date takes longer to write than most of a line.
 */
export function createIsoClock(): (epochMs: number) => string {
  let lastMs = 0;
  let last = new Date(0).toISOString();

  return (epochMs) => {
    if (epochMs !== lastMs) {
      lastMs = epochMs;
      last = new Date(epochMs).toISOString();
    }
    return last;
  };
}
