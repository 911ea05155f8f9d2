import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { secrets } from './fuzz-keys.ts';
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

  // This test comes last, because it bans a key. A short run of the fuzzer ends before a key is banned.
  it('changes nothing in the responses to a banned key', async () => {
    const request = `GET /v1/pets HTTP/1.1\r\nHost: api.test\r\nAuthorization: Bearer ${secrets.tight}\r\n\r\n`;
    const isBanned = () => rig.gateway.lines.some(({ msg }) => msg === 'a key is banned');
    while (!isBanned()) expect((await rig.try([request.repeat(20)])).faults).toEqual([]);
    const { statuses, faults } = await rig.try([request]);
    expect({ statuses, faults }).toEqual({ statuses: [429], faults: [] });
  });
});
