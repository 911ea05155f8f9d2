import type { Settings } from '../model.ts';

/** A table of the keys for a terminal; it shows how many secrets are valid, never a digest. */
export function formatKeys({ keys, secrets }: Pick<Settings, 'keys' | 'secrets'>, nowMs: number): string {
  const validSecrets = new Map<string, number>();
  for (const { keyId, expiresMs } of secrets.values()) {
    if (expiresMs > nowMs) validSecrets.set(keyId, (validSecrets.get(keyId) ?? 0) + 1);
  }
  const rows = [...keys.values()].map(({ id, plan, limits, disabled, name }) => [
    id,
    plan,
    limits.map(({ window, max }) => `${max}/${window}`).join(' '),
    disabled ? 'disabled' : String(validSecrets.get(id) ?? 0),
    name ?? '',
  ]);
  const table = [['ID', 'PLAN', 'LIMITS', 'VALID SECRETS', 'NAME'], ...rows];
  const widths =
    table[0]?.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0))) ?? [];
  return table
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
