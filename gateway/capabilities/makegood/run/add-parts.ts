import { addFigures } from '../../../shared/structures/add-figures.ts';
import type { MakegoodFigures } from '../wires.ts';

export const noFigures: MakegoodFigures = {
  examinedKeys: 0,
  keys: 0,
  failedUnits: 0,
  creditedKeys: 0,
  givenBack: { day: 0, month: 0 },
  unreadKeys: 0,
  unread: [],
};

/** Adds the figures of two parts of a run. @param namedMax the maximum number of ids in `unread` */
export function addParts(
  { unread, ...one }: MakegoodFigures,
  { unread: more, ...other }: MakegoodFigures,
  namedMax: number,
): MakegoodFigures {
  return { ...addFigures(one, other), unread: [...unread, ...more].slice(0, namedMax) };
}
