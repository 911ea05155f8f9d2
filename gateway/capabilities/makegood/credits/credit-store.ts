import type { Change } from '../../../quota/adjust.ts';
import type { QuotaState } from '../../../quota/hash.ts';
import type { StoreFailure } from '../../../request/limit/store/quota-store.ts';
import { isoOf } from '../../../shared/schema/dates-and-durations.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import {
  type Credit,
  type CreditCall,
  type Credits,
  type GivenBack,
  giveBack,
  noCredits,
} from './give-back.ts';

/** Stores the credits of keys beside their counts. The implementations for Redis and for memory pass the same tests. No promise rejects. */
export interface CreditStore {
  /** Gives a key back the units of its failed requests. Each unit of each bucket is given back once, however often the call is repeated. */
  giveBack(call: CreditCall): Promise<GivenBack | StoreFailure>;
  /** Returns the last credits of each key, the newest first. An element is undefined if the store does not reply. */
  read(keyIds: readonly string[]): Promise<readonly (readonly Credit[] | undefined)[]>;
}

/** Keeps the credits of a single process in memory, for at most `bounds.rememberedKeysMax` keys. */
export function createMemoryCredits({
  adjustBy,
  nowMs,
  bounds,
}: {
  /** Changes the counts of a key. */
  readonly adjustBy: (keyId: string, changeOf: (counts: Readonly<QuotaState>) => Change) => void;
  readonly nowMs: () => number;
  readonly bounds: Pick<Bounds, 'rememberedKeysMax' | 'windowsMs' | 'creditsShownMax'>;
}): CreditStore {
  const { windowsMs, creditsShownMax: lastMax } = bounds;
  const kept = new Map<string, { readonly credits: Credits; readonly expiresMs: number }>();

  return {
    async giveBack(call) {
      const { keyId, run } = call;
      const atMs = nowMs();
      let given: GivenBack = { kind: 'given', failedUnits: 0, units: { day: 0, month: 0 } };
      adjustBy(keyId, (counts) => {
        const { credits = noCredits, expiresMs = 0 } = keptOf(keyId) ?? {};
        const done = giveBack(counts, credits, call, { windowsMs, nowMs: atMs, lastMax });
        ({ given } = done);
        if (done.credits !== credits) {
          keep(keyId, { credits: done.credits, expiresMs: Math.max(expiresMs, run.keptUntilMs) });
        }
        return done.change;
      });
      return given;
    },
    read: async (keyIds) => keyIds.map((keyId) => keptOf(keyId)?.credits.last.map(withoutRun) ?? []),
  };

  function keptOf(keyId: string) {
    const found = kept.get(keyId);
    return found !== undefined && found.expiresMs > nowMs() ? found : undefined;
  }

  /** The key whose last credit is oldest is forgotten first. */
  function keep(keyId: string, one: { readonly credits: Credits; readonly expiresMs: number }): void {
    kept.delete(keyId);
    kept.set(keyId, one);
    const oldest = kept.keys().next();
    if (kept.size > bounds.rememberedKeysMax && !oldest.done) kept.delete(oldest.value);
  }
}

function withoutRun({ run: _, ...credit }: Credits['last'][number]): Credit {
  return credit;
}

/** Returns a credit as operators and the holder of the key see it. */
export function creditView({ atMs, fromMs, toMs, failedUnits, units }: Credit) {
  return { at: isoOf(atMs), from: isoOf(fromMs), to: isoOf(toMs), failedUnits, givenBack: units };
}

/** Parses the field `last` of a key's credits (`give-back.lua`). Omits unreadable credits. */
export function parseCredits(text: string): readonly Credit[] {
  return text.split(';').flatMap((packed) => {
    const numbers = packed.trim().split(' ').slice(1).map(Number);
    const [atMs = NaN, fromMs = NaN, toMs = NaN, failedUnits = NaN, day = NaN, month = NaN] = numbers;
    const isReadable = numbers.length >= 6 && !numbers.some(Number.isNaN);
    return isReadable ? [{ atMs, fromMs, toMs, failedUnits, units: { day, month } }] : [];
  });
}
