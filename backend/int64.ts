export const int64Min = -(2n ** 63n);
export const int64Max = 2n ** 63n - 1n;

/**
 * Reads an int64 from a path or query. Only the canonical spelling is accepted (no plus sign, no leading zero, no fraction), so that each
 * animal has one URL. Returns undefined for any other text.
 */
export function parseInt64(text: string): bigint | undefined {
  // The length is checked first, because BigInt takes seconds for a million digits.
  if (text.length > 20 || !/^(0|-?[1-9]\d*)$/.test(text)) return undefined;
  const value = BigInt(text);
  return isInt64(value) ? value : undefined;
}

export function isInt64(value: bigint): boolean {
  return value >= int64Min && value <= int64Max;
}
