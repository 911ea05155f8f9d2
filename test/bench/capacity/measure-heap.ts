import { setTimeout as sleep } from 'node:timers/promises';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { DirectoryKey } from '../../../gateway/keys/directory/directory-key.ts';
import { HeldKeys } from '../../../gateway/keys/directory/held-keys.ts';
import { emptyQuotaState } from '../../../gateway/quota/hash.ts';
import { createKeyLedger } from '../../../gateway/request/limit/key-ledger.ts';
import type { Decision } from '../../../gateway/shared/model.ts';
import { digestSecret } from '../../../gateway/shared/secrets.ts';
import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { createUsageRecorder } from '../../../gateway/usage/record/recorder.ts';
import type { UsageStore } from '../../../gateway/usage/store/usage-store.ts';
import { usageCalendar } from '../../../gateway/usage/usage-calendar.ts';
import { oneRun } from '../../support/one-run.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const idOf = (key: number) => `customer-${String(key).padStart(11, '0')}`;
const limits = [
  { window: 'minute', max: 60 },
  { window: 'day', max: 1_000 },
] as const;
const bans = { after: 100, withinMs: 60_000, forMs: 60_000, maxMs: 86_400_000 };

/**
 * Measures the memory that a process needs for each key: octets of heap and of buffers. Each id is a separate string, as if it had been
 * parsed from a file. The figures count only live objects. `capacity.md` states the memory of all keys, and the peak memory of a process.
 */
export async function measureHeap(keys: number) {
  console.log('heap of keys');
  return {
    recordedKeyBytes: await bytesEach(keys, recordKeys),
    rememberedKeyBytes: await bytesEach(keys, rememberKeys),
    heldKeyBytes: await bytesEach(keys, holdKeys),
    ...measurePacked(),
    heapBytesMax: getHeapStatistics().heap_size_limit,
  };
}

async function bytesEach(keys: number, hold: (keys: number) => Promise<unknown>): Promise<number> {
  const before = heapBytes();
  const held = await hold(keys);
  const after = heapBytes();
  if (held === undefined) throw new Error('nothing was held');
  return (after - before) / keys;
}

function heapBytes(): number {
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** Creates keys in the recorder. The recorder has already sent the counts of these keys to the store. */
async function recordKeys(keys: number): Promise<unknown> {
  const nowMs = Date.now();
  const store: UsageStore = {
    add: () => Promise.resolve('added'),
    remove: () => Promise.resolve(true),
    read: () => Promise.resolve(undefined),
    noteActive: () => Promise.resolve(true),
    active: () => Promise.resolve(undefined),
    lastSeen: () => Promise.resolve(undefined),
    placeOf: () => Math.random(),
    pausedBecause: () => undefined,
    close: () => {},
  };
  const bounds = {
    ...defaultBounds,
    usageFlushIntervalMs: 1_000,
    usageQuietRounds: 1,
    usageCallTimeoutMs: 100,
    usageKeysMax: Number.POSITIVE_INFINITY,
  };
  const recorder = createUsageRecorder({
    store,
    calendar: usageCalendar(60_000),
    keptMs: 1e9,
    allKeptMs: 1e9,
    bounds,
  });
  const window = { name: 'minute', limit: 60, remaining: 59, resetMs: 0, windowSeconds: 60 } as const;
  const decision: Decision = {
    kind: 'admitted',
    units: 1,
    rateLimit: { nowMs, windows: [window], inForce: window },
    source: 'shared',
  };
  for (let key = 0; key < keys; key++) {
    recorder.decided(idOf(key), decision, '192.0.2.1', '01234567');
    recorder.ended({
      ...{ keyId: idOf(key), operationId: 'listPets', atMs: nowMs, status: 200 },
      ...{ ending: 'served', ownMs: 1, upstreamMs: 2 },
    });
  }
  await sleep(3_000);
  return recorder;
}

async function rememberKeys(keys: number): Promise<unknown> {
  const bounds = { ...defaultBounds, rememberedKeysMax: keys };
  const ledger = createKeyLedger(bounds);
  for (let key = 0; key < keys; key++) {
    const call = { keyId: idOf(key), limits, bans, runs: oneRun(1) };
    ledger.takeUnsent(call);
    const state = { ...emptyQuotaState, minute: 60_000, minuteUsed: 1, day: 86_400_000, dayUsed: 1 };
    const decided = { admitted: 1, refused: 0, banned: 0, crowded: 0, admittedOf: [1] };
    ledger.settle(call, { nowMs: Date.now(), ...decided, state });
  }
  return ledger;
}

async function holdKeys(keys: number): Promise<unknown> {
  const held = new HeldKeys({ ...defaultBounds, directoryCachedKeysMax: keys, directoryCachedBytesMax: 1e9 });
  for (let key = 0; key < keys; key++) held.keep({ key: directoryKey(key), generation: 1 }, 1);
  return held;
}

/**
 * Measures packed keys. The memory of a key is the memory for packed keys divided by the number of keys for which it has room. The CPU is
 * the CPU for the use of a packed key: this key is unpacked, and another key is packed.
 */
function measurePacked() {
  const [keys, uses] = [200_000, 100_000];
  const bytesMax = defaultBounds.directoryPackedBytesMax / 8;
  const held = new HeldKeys({
    ...defaultBounds,
    directoryCachedKeysMax: 0,
    directoryPackedBytesMax: bytesMax,
  });
  for (let key = 0; key < keys; key++) held.keep({ key: directoryKey(key), generation: 1 }, 1);
  const packedKeyBytes = bytesMax / held.size;
  const digests = Array.from({ length: uses }, (_, use) => {
    return directoryKey(keys - 1 - ((use * 7_919) % Math.floor(held.size / 2))).secrets[0]?.digest ?? '';
  });
  const before = process.cpuUsage();
  for (const digest of digests) held.find(digest, 1);
  const { user, system } = process.cpuUsage(before);
  return { packedKeyBytes, unpackCpu: (user + system) / 1e6 / uses };
}

function directoryKey(key: number): DirectoryKey {
  const text = JSON.stringify({
    ...{ id: idOf(key), plan: 'free', name: `Customer ${key}`, disabled: false, revision: 1 },
    ...{ createdMs: 1, changedMs: 1, secrets: [{ digest: digestSecret(`secret of ${key}`), createdMs: 1 }] },
  });
  return JSON.parse(text);
}
