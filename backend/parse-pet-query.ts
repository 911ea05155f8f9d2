import { bounds } from './bounds.ts';
import { int64Max, int64Min, parseInt64 } from './int64.ts';
import type { PetQuery } from './pets.ts';
import { isPetStatus, petStatuses } from './pets.ts';

/** Reads the query of GET /pets. One message reports all problems, each with its parameter. Unknown parameters are ignored. */
export function parsePetQuery(
  parameters: URLSearchParams,
):
  | { readonly kind: 'valid'; readonly query: PetQuery }
  | { readonly kind: 'invalid'; readonly problem: string } {
  const problems: string[] = [];
  for (const name of ['limit', 'status', 'after']) {
    if (parameters.getAll(name).length > 1) problems.push(`${name} may be given only once`);
  }
  const { limit: limitText, status, after: afterText } = Object.fromEntries(parameters);

  const limit = limitText === undefined ? bounds.pageLimitDefault : Number(parseInt64(limitText) ?? 0n);
  if (limit < 1 || limit > bounds.pageLimitMax) {
    problems.push(`limit must be a whole number from 1 to ${bounds.pageLimitMax}`);
  }

  if (status !== undefined && !isPetStatus(status)) {
    problems.push(`status must be one of ${petStatuses.join(', ')}`);
  }

  const after = afterText === undefined ? undefined : parseInt64(afterText);
  if (afterText !== undefined && after === undefined) {
    problems.push(`after must be a whole number from ${int64Min} to ${int64Max}`);
  }

  if (problems.length > 0) return { kind: 'invalid', problem: problems.join('; ') };
  return {
    kind: 'valid',
    query: { limit, ...(isPetStatus(status) && { status }), ...(after !== undefined && { after }) },
  };
}
