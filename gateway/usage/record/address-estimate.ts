import { addressGroup } from '../../shared/addresses/address-group.ts';
import { hashOf } from '../../shared/structures/place-table.ts';

/** The size of the bitmap for estimating the number of distinct addresses. The addresses themselves are not stored. */
export const addressBits = 2_048;

/**
 * Returns the position in the bitmap for an address, from 0. All IPv6 addresses of a /64 have the same position. The
 * position is the FNV-1a hash, folded to eleven bits.
 */
export function addressBit(address: string): number {
  const hash = hashOf(addressGroup(address));
  // The folded hash spreads addresses more evenly than the low bits of FNV-1a.
  return ((hash ^ (hash >>> 11) ^ (hash >>> 22)) >>> 0) % addressBits;
}

/** The size of the smaller bitmap of a secret that is not valid, which shows up to about 1,400 addresses. */
export const deadAddressBits = 256;

/**
 * Estimates the number of distinct addresses by linear counting (Whang, Vander-Zanden, Taylor 1990). A full bitmap has no
 * finite estimate, so it counts as a bitmap with one clear bit.
 *
 * @param bits the size of the bitmap
 */
export function estimateAddresses(bitsSet: number, bits = addressBits): number {
  const clear = Math.max(1, bits - bitsSet);
  return Math.round(bits * Math.log(bits / clear));
}
