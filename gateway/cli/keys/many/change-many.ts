import { setTimeout as sleep } from 'node:timers/promises';
import { getKeyWire, type KeyDetail } from '../../../admin/wires/keys/key.ts';
import { awayText } from '../../../admin/words/list.js';
import {
  forecastOf,
  type ManyWords,
  notTriedText,
  type Outcome,
  summaryOf,
  withTerms,
} from '../../../admin/words/many-keys.js';
import { counted, figure } from '../../../shared/words/figures.js';
import type { AdminClient } from '../../admin/admin-client.ts';
import { clientOf } from '../../admin/find-gateway.ts';
import { changeKey } from '../../admin/read/read-key.ts';
import { CommandError } from '../../output/command-error.ts';
import { progressHere } from '../../output/progress.ts';
import { print, printJson } from '../../output/screen.ts';
import { configurationOf, type LoadedKeys, loadKeys } from '../file/edit-keys.ts';
import type { ChangedKey } from '../file/writable-keys.ts';
import { editFileKeys, type FileEdit } from '../file-keys.ts';
import { type ToldChange, tellChanges } from '../tell-change.ts';
import { confirmed } from './confirm.ts';
import type { SelectionOptions } from './select-keys.ts';

const againText = 'Run the same command again: it changes only what is left.';

/** A change that a command makes to each of many keys. */
export interface ManyChange {
  readonly words: ManyWords;
  /** What applies to each key after the change: "90 a minute until 2026-11-29 24:00 UTC". */
  readonly terms?: string | undefined;
  /** Called before each part of the keys is changed, so that what they need is stored. */
  readonly prepare?: (ids: readonly string[]) => void;
  /** Changes a key through the admin API. A repeated call changes nothing. */
  readonly ask: (client: AdminClient, id: string) => Promise<{ readonly isChanged: boolean }>;
  /**
   * Returns whether the change would change the key, as far as its data tell, for `--dry-run`.
   *
   * @throws a CommandError with the reason for which the change would fail
   */
  readonly foresee: (key: KeyDetail, client: AdminClient) => boolean | Promise<boolean>;
  /** Changes a key of the keys file; absent if the admin API changes keys of files, too. */
  readonly inFile?: (id: string) => FileEdit;
  /** What the record of changes gets about a changed key of the keys file. */
  readonly told?: (changed: ChangedKey) => ToldChange;
}

/**
 * Changes the keys, after the operator has confirmed their number. Keys of the keys file are written together. Directory keys are changed
 * some at a time. A failed key does not stop the others. Each change can be repeated, so the command can run again after a crash.
 * With `--dry-run`, the function reads the keys, and prints for which of them the change would succeed.
 *
 * @throws a CommandError if nothing was changed
 */
export async function changeMany(
  ids: readonly string[],
  change: ManyChange,
  options: SelectionOptions & { readonly directory?: true },
): Promise<void> {
  const [inFile, byApi] = divide(ids, change, options);
  const { verb } = change.words;
  const where = [
    inFile.length > 0 && `${figure(inFile.length)} in the keys file`,
    inFile.length > 0 && byApi.length > 0 && `${figure(byApi.length)} in the key directory`,
  ].filter((one) => one !== false);
  const question = `${verb} ${counted(ids.length, 'key')}${where.length > 0 ? ` (${where.join(', ')})` : ''}${withTerms(change.terms)}`;
  if (!options.dryRun && !(await confirmed(question, ids.length, options)))
    throw new CommandError('Nothing was changed.');
  const outcome: Outcome = { changed: [], unchanged: [], failed: [] };
  if (inFile.length > 0) await changeInFile(inFile, change, options, outcome);
  if (byApi.length > 0) {
    const made = options.dryRun ? { ...change, ask: foreseen(change) } : change;
    await changeByApi(byApi, made, await clientOf(options), outcome, ids.length);
  }
  if (options.json) printJson(options.dryRun ? { dryRun: true, keys: ids, ...outcome } : outcome);
  else
    print(
      options.dryRun
        ? forecastOf(inOrderOf(ids, outcome), change.words, change.terms)
        : summaryOf(outcome, change.words, againText, change.terms),
    );
  if (outcome.failed.length > 0) process.exitCode = 1;
}

/** Reads a key in place of its change. The admin API changes no key while Redis is away. */
function foreseen({ foresee }: ManyChange): ManyChange['ask'] {
  return async (client, id) => {
    const { body } = await changeKey(id, () => client.ask(getKeyWire, { params: { id } }));
    if (body.missing?.what.includes('requests'))
      throw new CommandError(`${awayText(body.missing)}, so the change would fail now.`);
    return { isChanged: await foresee(body, client) };
  };
}

/** The calls for several keys end in any order. */
function inOrderOf(ids: readonly string[], outcome: Outcome): Outcome {
  const changed = new Set(outcome.changed);
  return { ...outcome, changed: ids.filter((id) => changed.has(id)) };
}

/** The keys that the command changes in the keys file, and those that it changes through the admin API. */
function divide(
  ids: readonly string[],
  { inFile }: ManyChange,
  { directory, config }: { readonly directory?: true; readonly config?: string | undefined },
): readonly [string[], string[]] {
  if (inFile === undefined || directory) return [[], [...ids]];
  const { settings }: LoadedKeys = loadKeys({ ...configurationOf(config), onlyKeys: true });
  const isInFile = (id: string) => settings.keys.has(id) || !settings.directory;
  return [ids.filter(isInFile), ids.filter((id) => !isInFile(id))];
}

async function changeInFile(
  ids: readonly string[],
  { prepare, inFile, told }: ManyChange,
  options: SelectionOptions,
  outcome: Outcome,
): Promise<void> {
  prepare?.(ids);
  const edits = ids.flatMap((id) => inFile?.(id) ?? []);
  const results = await editFileKeys(configurationOf(options.config), edits, options);
  const changes: ToldChange[] = [];
  for (const [index, id] of ids.entries()) {
    const result = results[index];
    if (result === undefined || result instanceof CommandError)
      outcome.failed.push({ id, why: result?.message ?? 'It was not edited.' });
    else {
      (result.isChanged ? outcome.changed : outcome.unchanged).push(id);
      if (result.isChanged && told && !options.dryRun) changes.push(told(result));
    }
  }
  await tellChanges(options, changes);
}

async function changeByApi(
  ids: readonly string[],
  { prepare, ask }: ManyChange,
  client: AdminClient,
  outcome: Outcome,
  ofAll: number,
): Promise<void> {
  const { manyKeysAtOnce: atOnce, manyKeysPerPart: perPart, manyFailuresMax: failuresMax } = client.bounds;
  const progress = progressHere();
  const doneInFile = ofAll - ids.length;
  let done = 0;
  /** Keys in a row for which the gateway did not answer. */
  let unanswered = 0;
  const changeOne = async (id: string) => {
    if (unanswered >= failuresMax) {
      outcome.failed.push({ id, why: notTriedText });
      return;
    }
    try {
      const { isChanged } = await repeated(() => ask(client, id), client.bounds);
      unanswered = 0;
      (isChanged ? outcome.changed : outcome.unchanged).push(id);
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      unanswered = error.kind === 'passing' ? unanswered + 1 : 0;
      outcome.failed.push({ id, why: error.message });
    }
    done += 1;
    progress.show(doneInFile + done, ofAll);
  };
  try {
    for (let from = 0; from < ids.length; from += perPart) {
      const part = ids.slice(from, from + perPart);
      prepare?.(part);
      const waiting = part.values();
      await Promise.all(
        Array.from({ length: atOnce }, async () => {
          for (const id of waiting) await changeOne(id);
        }),
      );
    }
  } finally {
    progress.end();
  }
}

/** Repeats a call while its failure may pass, with longer and longer waits, or as long as the gateway says. */
async function repeated<Result>(
  call: () => Promise<Result>,
  { manyAttemptsMax, manyRetryMs, manyRetryMaxMs }: AdminClient['bounds'],
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof CommandError) || error.kind !== 'passing' || attempt >= manyAttemptsMax)
        throw error;
      const waitMs = Math.max(manyRetryMs * 2 ** (attempt - 1), error.retryAfterMs);
      await sleep(Math.min(waitMs, manyRetryMaxMs));
    }
  }
}
