/** A lookup table over the 256 octets: 1 where the character class has the octet. For loops over raw bytes. */
export function byteTable(characterClass: RegExp): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, byte) =>
    characterClass.test(String.fromCharCode(byte)) ? 1 : 0,
  );
}
