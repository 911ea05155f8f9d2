import type {
  AnswerPage,
  ObserveDecision,
  ObserveEnd,
  RequestHooks,
} from '../../capabilities/interfaces/request.ts';
import type { ProcessPart } from '../../capabilities/interfaces/running.ts';
import type { Settings } from '../../shared/model.ts';
import { apiReference, type ReferenceAssets } from '../pages/api-reference.ts';
import { answerPublicPage } from './own-answers.ts';

/**
 * Makes the hooks of the request path for a snapshot. The core comes first, except at the end: the access line shows what the observers of
 * capabilities add to the exchange.
 *
 * @param assets the files of the API reference, which are the same in every snapshot
 * @param recordDecision records a decision in the usage record; undefined without a usage record
 * @param recordEnd records an ended exchange: the access log, metrics, warnings and the usage record
 */
export function compileHooks(
  settings: Settings,
  { assets, recordDecision, recordEnd, parts }: HookSources,
): RequestHooks {
  const all = parts.flatMap((part) => part.hooks?.(settings) ?? []);
  return {
    pages: new Map([...corePages(settings, assets), ...all.flatMap(({ pages }) => [...(pages ?? [])])]),
    observeDecision: [
      ...(recordDecision === undefined ? [] : [recordDecision]),
      ...all.flatMap(({ observeDecision }) => observeDecision ?? []),
    ],
    refuse: all.flatMap(({ refuse }) => refuse ?? []),
    attemptFields: all.flatMap(({ attemptFields }) => attemptFields ?? []),
    observeAttempt: all.flatMap(({ observeAttempt }) => observeAttempt ?? []),
    observeEnd: [...all.flatMap(({ observeEnd }) => observeEnd ?? []), ...recordEnd],
  };
}

export interface HookSources {
  readonly assets: ReferenceAssets;
  readonly recordDecision: ObserveDecision | undefined;
  readonly recordEnd: readonly ObserveEnd[];
  readonly parts: readonly ProcessPart[];
}

/** The pages that belong to no capability: the API reference. */
function* corePages(
  { docs }: Settings,
  assets: ReferenceAssets,
): Generator<[path: string, answer: AnswerPage]> {
  if (docs === undefined) return;
  for (const [path, file] of apiReference(docs, assets)) yield [path, answerPublicPage(file)];
}
