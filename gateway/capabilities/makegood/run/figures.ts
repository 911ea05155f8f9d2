import * as z from 'zod';
import { makegoodFigures } from '../wires.ts';

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
