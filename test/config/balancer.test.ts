import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { createAuthority, type KeyPair } from '../support/certificates.ts';
import { startFleetHere } from '../support/fleet.ts';
import { freePort } from '../support/free-port.ts';
import { makeKey, type RunningGateway } from '../support/gateway-process.ts';
import { requireProgram } from '../support/require-program.ts';
import { until } from '../support/until.ts';

/**
 * Starts HAProxy with the shipped configuration. The test replaces only the names and ports of the gateways, because its gateways have
 * other addresses.
 */
async function startHaproxy(gateways: readonly RunningGateway[], certificate?: KeyPair) {
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
    .replaceAll('bind :8080', `bind 127.0.0.1:${port}`)
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
  if (certificate !== undefined) await writeFile(join(folder, 'tls.pem'), certificate.cert + certificate.key);
  const child = spawn(program, ['-db', '-f', join(folder, 'haproxy.cfg')], {
    stdio: 'ignore',
    env: { ...process.env, BALANCER_FILES: folder, BALANCER_TLS: certificate === undefined ? '' : 'tls.pem' },
  });
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

it('with a certificate, clients of the balancer speak HTTP/2 over TLS, and their keys are counted', {
  tags: 'full',
}, async () => {
  const run = promisify(execFile);
  const key = makeKey({ id: 'acme' });
  const fleet = await startFleetHere({ starts: [{}, {}], config: { keys: [key.entry] } });
  onTestFinished(() => fleet.stop());
  const authority = createAuthority();
  const { port } = await startHaproxy(fleet.gateways, authority.issue());
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-http2-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'ca.pem'), authority.cert);
  const url = `https://127.0.0.1:${port}/v1/pets`;
  const bearer = `Authorization: Bearer ${key.secret}`;
  const curl = async () => {
    const args = ['--http2', '--cacert', join(folder, 'ca.pem'), '--header', bearer];
    const format = '%{http_version} %{response_code} %header{x-ratelimit-limit}';
    const { stdout } = await run('curl', [...args, '-s', '-o', '/dev/null', '-w', format, url]).catch(() => ({
      stdout: '',
    }));
    return stdout;
  };
  await until('the balancer serves keys', async () => (await curl()).includes(' 200 '));
  expect(await curl()).toBe('2 200 60');

  const h2load = await requireProgram({
    names: ['h2load'],
    packageName: 'nghttp2-client',
    advice: 'The tests of the balancer need h2load on the PATH.',
  });
  const { stdout } = await run(h2load, ['-n', '20', '-c', '2', '-m', '5', '-H', bearer, url]);
  expect(stdout).toContain('20 done, 20 succeeded');
});
