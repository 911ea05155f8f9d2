import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { startFleetHere } from '../support/fleet.ts';
import { freePort } from '../support/free-port.ts';
import { makeKey, type RunningGateway } from '../support/gateway-process.ts';
import { requireProgram } from '../support/require-program.ts';
import { until } from '../support/until.ts';

/**
 * Starts HAProxy with the shipped configuration. Only the names and ports of the gateways are those of this machine.
 */
async function startHaproxy(gateways: readonly RunningGateway[]) {
  const program = await requireProgram({
    names: ['haproxy'],
    packageName: 'haproxy',
    advice: 'The tests of the balancer need haproxy on the PATH.',
  });
  const [port, adminPort, healthPort] = [await freePort(), await freePort(), await freePort()];
  const adminPortOf = ({ adminUrl }: RunningGateway) => Number(new URL(adminUrl).port);
  const servers = (line: (gateway: RunningGateway) => string) =>
    gateways.map((gateway, index) => `    server gateway${index} ${line(gateway)}`).join('\n');
  const shipped = await readFile(new URL('../../config/balancer/haproxy.cfg', import.meta.url), 'utf8');
  const config = shipped
    .replace('bind :8080', `bind 127.0.0.1:${port}`)
    .replace('bind :9090', `bind 127.0.0.1:${adminPort}`)
    .replace('bind 127.0.0.1:8404', `bind 127.0.0.1:${healthPort}`)
    .replace(
      /^ *server-template gateway 16 gateway:8080 .*$/m,
      servers((one) => `127.0.0.1:${one.port} check port ${adminPortOf(one)}`),
    )
    .replace(
      /^ *server-template gateway 16 gateway:9090 .*$/m,
      servers((one) => `127.0.0.1:${adminPortOf(one)}`),
    );
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-haproxy-'));
  await writeFile(join(folder, 'haproxy.cfg'), config);
  const child = spawn(program, ['-db', '-f', join(folder, 'haproxy.cfg')], { stdio: 'ignore' });
  onTestFinished(async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    await rm(folder, { recursive: true });
  });
  return { port, adminPort };
}

it('an operator reaches the pages at the balancer’s admin port, and another gateway responds when one is killed', async () => {
  const [key, writer] = [makeKey({ id: 'acme' }), makeToken('write', 'ada')];
  const fleet = await startFleetHere({
    starts: [{}, {}],
    config: { keys: [key.entry], admin: { host: '127.0.0.1', port: 0, tokens: [writer.entry] } },
  });
  onTestFinished(() => fleet.stop());
  const { port, adminPort } = await startHaproxy(fleet.gateways);
  const origin = `http://127.0.0.1:${adminPort}`;
  const isUp = (url: string, headers = {}) =>
    fetch(url, { headers }).then(
      ({ ok }) => ok,
      () => false,
    );
  const bearer = { authorization: `Bearer ${key.secret}` };
  await until('the balancer serves keys', () => isUp(`http://127.0.0.1:${port}/v1/pets`, bearer));
  await until('the balancer serves operators', () => isUp(`${origin}/readyz`));

  expect(await isUp(`${origin}/keys`)).toBe(true);
  // A browser sends an Origin when an operator clicks a button of a page.
  const change = () =>
    askAdmin(adminPort, '/api/v1/keys/acme/unban', {
      token: writer.token,
      method: 'POST',
      headers: { origin },
    });
  expect((await change()).status).toBe(200);

  await fleet.gateways[0]?.stop('SIGKILL');
  await until('the other one answers', () => isUp(`${origin}/readyz`));
  expect((await change()).status).toBe(200);
});
