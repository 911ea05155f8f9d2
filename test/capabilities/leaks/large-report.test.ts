/** In `npm test`: `test/capabilities/leaks/reports.test.ts` */
import { request } from 'undici';
import { expect, it, onTestFinished } from 'vitest';
import { issueSecret } from '../../../gateway/shared/secrets.ts';
import { startFleet } from '../../support/fleet.ts';
import { makeCustomKey } from '../../support/gateway-process.ts';
import { inventedSecret } from '../../support/invented-secret.ts';
import { entryFor, labelOf, makeReporter, sendReport } from '../../support/leak-report.ts';
import { patientGateway } from '../../support/tuning.ts';

it('a report with 100,000 invented tokens is answered whole, and does not stop other requests', {
  tags: 'full',
}, async () => {
  const reporter = makeReporter();
  const key = makeCustomKey(1_000_000, 1_000_000);
  const fleet = await startFleet({
    starts: [{ tuning: { bounds: patientGateway } }],
    config: {
      keys: { file: './keys.yaml', directory: true },
      leaksPath: '/leaks',
      leaks: { github: { keysFile: './github-keys.json' } },
    },
    files: { 'keys.yaml': [key.entry], 'github-keys.json': reporter.publicKeys },
  });
  onTestFinished(() => fleet.stop());
  const [origin = ''] = fleet.origins;
  const tokens = Array.from({ length: 100_000 }, (_, index) =>
    index % 1_000 === 0 ? issueSecret() : inventedSecret(),
  );
  tokens.push(key.secret);
  let isAnswered = false;
  const report = sendReport(
    origin,
    reporter,
    tokens.map((token) => entryFor(token)),
  ).finally(() => {
    isAnswered = true;
  });
  const statuses: number[] = [];
  while (!isAnswered) {
    const headers = { authorization: `Bearer ${key.secret}` };
    const { statusCode, body } = await request(`${origin}/v1/pets`, { headers });
    await body.dump();
    statuses.push(statusCode);
  }
  const { status, body } = await report;
  expect([status, body.length]).toEqual([200, tokens.length]);
  expect(body.at(-1)).toEqual(labelOf(key.secret, 'true_positive'));
  expect(body.filter(({ label }: { label: string }) => label === 'true_positive')).toHaveLength(1);
  // The secret of the requests ends with the report, so the last requests may get 401.
  const served = statuses.filter((one) => one === 200).length;
  expect(served).toBeGreaterThan(100);
  expect(statuses.filter((one) => one !== 200 && one !== 401)).toEqual([]);
});
