import { createInterface } from 'node:readline/promises';
import { CommandError } from '../../output/command-error.ts';
import type { SelectionOptions } from './select-keys.ts';

/**
 * Asks the operator to type the number of the keys. A single key needs no question.
 *
 * @param question such as "revoke 50 keys"
 * @throws a CommandError without a terminal and without `--yes`
 */
export async function confirmed(
  question: string,
  count: number,
  { yes, file }: Pick<SelectionOptions, 'yes' | 'file'>,
): Promise<boolean> {
  if (yes || count === 1) return true;
  if (!process.stdin.isTTY || file === '-')
    throw new CommandError(
      `This command would ${question}. Give --yes to do so, or --dry-run to check the keys.`,
    );
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const typed = await lines.question(`This command will ${question}. Type ${count} to confirm: `);
    return typed.trim() === String(count);
  } finally {
    lines.close();
  }
}
