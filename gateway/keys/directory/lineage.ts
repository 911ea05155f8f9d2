import type { PastSecret } from './directory-key.ts';

/**
 * A holder issues a secret with another secret (`issuedFrom`), and a thief may be this holder. A report of a leaked secret therefore ends
 * its descendants too. A secret that an operator issued is a root, because only an admin token issues it.
 */

type Link = Pick<PastSecret, 'digest' | 'issuedFrom'>;

/** Secrets that were issued from this secret, directly or through other secrets. */
export function descendantsOf(digest: string, secrets: readonly Link[]): ReadonlySet<string> {
  const descendants = new Set<string>();
  const ancestors = [digest];
  for (const ancestor of ancestors) {
    for (const { digest: issued, issuedFrom } of secrets) {
      if (issuedFrom !== ancestor || descendants.has(issued)) continue;
      descendants.add(issued);
      ancestors.push(issued);
    }
  }
  return descendants;
}

/** Candidates from which one of the secrets descends. */
export function ancestorsOf<One extends Link>(
  secrets: readonly Link[],
  candidates: readonly One[],
): readonly One[] {
  const byDigest = new Map(candidates.map((one) => [one.digest, one]));
  const ancestors = new Set<One>();
  for (const { issuedFrom } of secrets) {
    let ancestor = byDigest.get(issuedFrom ?? '');
    while (ancestor !== undefined && !ancestors.has(ancestor)) {
      ancestors.add(ancestor);
      ancestor = byDigest.get(ancestor.issuedFrom ?? '');
    }
  }
  return [...ancestors];
}
