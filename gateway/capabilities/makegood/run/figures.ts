import * as z from 'zod';
import { addFigures } from '../../../shared/structures/add-figures.ts';
import { type MakegoodFigures, makegoodFigures } from '../wires.ts';

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

const cursor = z.object({ run: z.string().regex(/^[\w-]{8}$/), after: z.string(), figures: makegoodFigures });

/** The position of a run between two parts: its name, the last key of the previous part, and the figures so far. */
export type MakegoodCursor = z.output<typeof cursor>;

export function packCursor(position: MakegoodCursor): string {
  return Buffer.from(JSON.stringify(position)).toString('base64url');
}

/** Returns undefined for a text that `packCursor` did not make. */
export function parseCursor(text: string): MakegoodCursor | undefined {
  try {
    return cursor.safeParse(JSON.parse(Buffer.from(text, 'base64url').toString())).data;
  } catch {
    return undefined;
  }
}
