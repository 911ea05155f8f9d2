import { bounds } from './bounds.ts';
import { int64Max, int64Min } from './int64.ts';
import type { NewPet } from './pets.ts';
import { isPetStatus, petStatuses } from './pets.ts';

/**
 * Reads a NewPet from a parsed body. One message reports all problems, each with its field. Fields that the
 * specification does not name are ignored and not stored.
 */
export function parseNewPet(
  body: unknown,
): { readonly kind: 'valid'; readonly pet: NewPet } | { readonly kind: 'invalid'; readonly problem: string } {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    return { kind: 'invalid', problem: 'the body must be a JSON object with the fields name and categoryId' };
  }
  const { name, categoryId, status } = body as Record<string, unknown>;
  const problems: string[] = [];

  if (name === undefined) problems.push('name is required');
  else if (typeof name !== 'string') problems.push('name must be a string');
  else if ([...name].length > bounds.nameCharactersMax) {
    problems.push(`name must have at most ${bounds.nameCharactersMax} characters`);
  }

  if (categoryId === undefined) problems.push('categoryId is required');
  else if (typeof categoryId !== 'bigint') {
    problems.push(`categoryId must be a whole number from ${int64Min} to ${int64Max}`);
  }

  if (status !== undefined && !isPetStatus(status)) {
    problems.push(`status must be one of ${petStatuses.join(', ')}`);
  }

  if (problems.length > 0 || typeof name !== 'string' || typeof categoryId !== 'bigint') {
    return { kind: 'invalid', problem: problems.join('; ') };
  }
  return { kind: 'valid', pet: isPetStatus(status) ? { name, categoryId, status } : { name, categoryId } };
}
