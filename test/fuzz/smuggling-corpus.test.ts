import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Rig, startRig } from './rig.ts';
import { type CorpusCase, smugglingCorpus } from './smuggling-corpus.ts';

const admittedBy: Record<CorpusCase['expect'], number> = {
  refused: 0,
  'admitted-once': 1,
  'first-only': 1,
  'admitted-twice': 2,
};

describe('known request smuggling', () => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startRig();
  });
  afterAll(async () => {
    expect(await rig.stop()).toEqual([]);
  });

  it.each(smugglingCorpus)('$name: $expect', async ({ bytes, expect: expectation, responses }) => {
    const whole = await rig.try([bytes]);
    expect(whole.faults).toEqual([]);
    expect(whole.statuses).toEqual(responses);
    expect(whole.admitted).toBe(admittedBy[expectation]);
  });

  it.each(smugglingCorpus)('$name, byte by byte: $expect', async ({ bytes, expect: expectation }) => {
    const split = await rig.try([...bytes]);
    expect(split.faults).toEqual([]);
    expect(split.admitted).toBe(admittedBy[expectation]);
  });
});
