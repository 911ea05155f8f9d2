import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Fleet, startFleetHere } from '../support/fleet.ts';
import { makeCustomKey, type RunningGateway } from '../support/gateway-process.ts';
import { type Prometheus, startPrometheus } from '../support/prometheus.ts';
import { patientGateway } from '../support/tuning.ts';
import { until } from '../support/until.ts';

const key = makeCustomKey(1_000, 1_000);

let fleet: Fleet<RunningGateway>;
let prometheus: Prometheus;

beforeAll(async () => {
  const start = { tuning: { bounds: patientGateway } };
  fleet = await startFleetHere({ starts: [start, start], config: { keys: [key.entry] } });
  prometheus = await startPrometheus(fleet.gateways.map(({ adminUrl }) => new URL(adminUrl).host));
});
afterAll(async () => {
  await prometheus?.stop();
  await fleet?.stop();
});

/** Returns the results of a PromQL expression, by the values of the given labels. */
async function values(expression: string, ...labels: string[]): Promise<Record<string, number>> {
  const samples = await prometheus.query(expression);
  return Object.fromEntries(
    samples.map((sample) => [labels.map((label) => sample.labels[label]).join(' '), sample.value]),
  );
}

it('Prometheus scrapes two processes on one Redis, and its sums are what was sent to both', async () => {
  const secrets = [...Array<string>(25).fill(key.secret), ...Array<string>(7).fill('nobody')];
  for (const [index, secret] of secrets.entries()) {
    // The first process gets three of four requests.
    const { baseUrl } = fleet.gateways[index % 4 === 0 ? 1 : 0] ?? { baseUrl: '' };
    const response = await fetch(`${baseUrl}/pets`, { headers: { authorization: `Bearer ${secret}` } });
    await response.arrayBuffer();
    expect(response.status).toBe(secret === key.secret ? 200 : 401);
  }
  // Each query is repeated, because a process that misses one scrape has no samples until the next scrape.
  await expect
    .poll(() => values('sum by (status) (tollgate_requests_total)', 'status'))
    .toEqual({ 200: 25, 401: 7 });
  const perProcess = () => values('sum by (instance) (tollgate_requests_total)', 'instance');
  await expect.poll(async () => Object.values(await perProcess()).toSorted((a, b) => a - b)).toEqual([8, 24]);
  await expect.poll(() => values('sum(tollgate_rejected_total)')).toEqual({ '': 7 });
  await expect
    .poll(() => values('sum(tollgate_request_duration_seconds_count)'))
    .toEqual({ '': secrets.length });
});

it('Prometheus sees every process, evaluates every alert, and fires none', async () => {
  await until('both are up', async () => (await values('sum(up{job="tollgate"})'))[''] === 2);
  const alerts = readFileSync(new URL('../../config/observe/alerts.yml', import.meta.url), 'utf8');
  const names = alerts.match(/(?<=- alert: )\w+/g) ?? [];
  await until('every rule was evaluated', async () =>
    (await prometheus.rules()).every(({ health }) => health !== 'unknown'),
  );
  expect(await prometheus.rules()).toEqual(
    names.map((name) => expect.objectContaining({ name, health: 'ok' })),
  );
  await until('no alert is raised', async () => (await prometheus.query('ALERTS')).length === 0);
});

it('a missing process and an unreachable Redis fire their alerts', async () => {
  await fleet.gateways[1]?.stop('SIGKILL');
  await fleet.redis.kill();
  const raised = { TollgateDown: 1, TollgateStoreAway: 1 };
  await expect.poll(() => values('count by (alertname) (ALERTS)', 'alertname')).toEqual(raised);
});
