/** Redis Cluster divides all keys into so many slots, and gives each to one server. */
export const slotsCount = 16_384;

/**
 * The slot of a key: CRC16 (XMODEM) of its UTF-8 octets, or of what stands between its first `{` and the next `}` unless
 * that is nothing; as `CLUSTER KEYSLOT` computes it.
 */
export function keySlot(key: string): number {
  const octets = Buffer.from(hashTag(key));
  let crc = 0;
  for (const octet of octets) crc = ((crc << 8) & 0xffff) ^ (crcTable[(crc >> 8) ^ octet] ?? 0);
  return crc % slotsCount;
}

function hashTag(key: string): string {
  const open = key.indexOf('{');
  if (open === -1) return key;
  const close = key.indexOf('}', open + 1);
  return close > open + 1 ? key.slice(open + 1, close) : key;
}

const crcTable = Uint16Array.from({ length: 256 }, (_, octet) => {
  let crc = octet << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : crc << 1;
  return crc;
});
