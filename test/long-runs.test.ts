/** In `npm test`: `test/architecture.test.ts` shows that every npm script has its file. */

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

it('npm run bench, capacity, faults and fuzz find their files and print their options', {
  tags: 'full',
}, async () => {
  const scripts = ['bench/run.ts', 'bench/capacity/run.ts', 'faults/run.ts', 'fuzz/run.ts'];
  const outputs = await Promise.all(
    scripts.map(async (script) => {
      const { stdout } = await promisify(execFile)(process.execPath, [`test/${script}`, '--help']);
      return stdout.split(' -- ', 1)[0];
    }),
  );
  expect(outputs).toEqual(['bench', 'capacity', 'faults', 'fuzz'].map((name) => `npm run ${name}`));
});
