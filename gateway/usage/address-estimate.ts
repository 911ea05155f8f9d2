import { addressGroup } from '../shared/address-group.ts';

/** How many distinct addresses a key used is estimated from this many bits; none of the addresses is kept. */
export const addressBits = 2_048;

/** The bit of an address (IPv6 by its /64), from 0: FNV-1a, folded to eleven bits. */
export function addressBit(address: string): number {
  const group = addressGroup(address);
  let hash = 0x811c9dc5;
  for (let i = 0; i < group.length; i++) {
    hash ^= group.charCodeAt(i);
    hash = Math.imul(hash, 0x01000193);
  }
  // The low bits of FNV-1a alone are less evenly spread than all of them together.
  return ((hash ^ (hash >>> 11) ^ (hash >>> 22)) >>> 0) % addressBits;
}

/**
 * About how many addresses set so many bits: linear counting (Whang, Vander-Zanden, Taylor 1990). With every bit
 * set it can only be said that there were many: the estimate is then that of one clear bit.
 */
export function estimateAddresses(bitsSet: number): number {
  const clear = Math.max(1, addressBits - bitsSet);
  return Math.round(addressBits * Math.log(addressBits / clear));
}
