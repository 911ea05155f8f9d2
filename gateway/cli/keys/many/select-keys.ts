import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { listKeysWire } from '../../../admin/wires/keys/keys.ts';
import { keysPerPageMax } from '../../../shared/http/wire.ts';
import { keyIdPattern } from '../../../shared/model.ts';
import { printable } from '../../../shared/terminal/printable.ts';
import { clientOf } from '../../admin/find-gateway.ts';
import { readList } from '../../admin/read/read-list.ts';
import type { Asking } from '../../command.ts';
import { CommandError, unreadable } from '../../output/command-error.ts';
import { tellMissing } from '../../output/show.ts';

/** The keys that a command changes, and how it asks before. */
export interface SelectionOptions extends Asking {
  readonly ofPlan?: string;
  readonly state?: string;
  readonly olderThan?: string;
  /** Separated by commas. */
  readonly ids?: string;
  /** A file with an id on each line; `-` means standard input. */
  readonly file?: string;
  readonly dryRun?: true;
  readonly yes?: true;
}

/** Returns the id of the key that the command changes as its only key; undefined if the options select keys, or ask for a list. */
export function onlyKey(
  argument: string | undefined,
  { ofPlan, state, olderThan, ids, file, dryRun }: SelectionOptions,
): string | undefined {
  const isMany = [ofPlan, state, olderThan, ids, file, dryRun].some((one) => one !== undefined);
  return isMany ? undefined : argument;
}

/**
 * Returns the ids of the selected keys, each once. A gateway finds the keys of a plan, a state or an age; ids are taken as they are.
 *
 * @throws a CommandError if nothing is selected, or if a line is no id
 */
export async function selectKeys(
  argument: string | undefined,
  options: SelectionOptions,
): Promise<readonly string[]> {
  const { ofPlan: plan, state, olderThan, ids, file } = options;
  const filters = [plan, state, olderThan].some((one) => one !== undefined);
  if ([argument, ids, file, filters || undefined].filter((one) => one !== undefined).length > 1)
    throw new CommandError(
      'Which keys? Give an id, --ids, --file, or filters such as --of-plan, but only one of these.',
    );
  if (filters) return found(options, { plan, state, olderThan });
  const named = argument ?? ids?.split(',').join('\n') ?? (file === undefined ? undefined : await read(file));
  if (named === undefined)
    throw new CommandError(
      'Which keys? Give an id, --ids a,b, --file FILE, --of-plan PLAN or --state STATE.',
    );
  return idsIn(named, file);
}

async function found(
  options: Asking,
  query: Readonly<Record<'plan' | 'state' | 'olderThan', string | undefined>>,
): Promise<readonly string[]> {
  const client = await clientOf(options);
  const page = { wire: listKeysWire, member: 'keys', perPage: keysPerPageMax };
  const { body, json } = await readList(client, page, { ...query, sort: 'id' }, Number.POSITIVE_INFINITY);
  tellMissing(json);
  return body.keys.map(({ id }) => id);
}

async function read(file: string): Promise<string> {
  try {
    return file === '-' ? await text(process.stdin) : await readFile(file, 'utf8');
  } catch (error) {
    throw unreadable(file, error);
  }
}

/** Comments begin with `#`. The lists of `keys list` with `--csv` are accepted, and a file of secrets: their first column has the ids. */
function idsIn(named: string, file: string | undefined): readonly string[] {
  // A spreadsheet may write a byte order mark, and quote the titles.
  const lines = named.replace(/^\uFEFF/, '').split(/\r?\n/);
  const isList = /^"?(id|key)"?,/i.test(lines[0] ?? '');
  const ids = new Set<string>();
  for (const [index, written] of lines.entries()) {
    const line = written.replace(/^"|".*$|,.*$/g, '').trim();
    if (line === '' || line.startsWith('#') || (isList && index === 0)) continue;
    if (!keyIdPattern.test(line)) {
      const where =
        file === undefined ? '' : ` in line ${index + 1} of ${file === '-' ? 'standard input' : file}`;
      throw new CommandError(printable(`"${line.slice(0, 100)}"${where} is no id of a key.`));
    }
    ids.add(line);
  }
  if (ids.size === 0) throw new CommandError('No key is named.');
  return [...ids];
}
