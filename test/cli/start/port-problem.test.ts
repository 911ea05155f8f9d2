import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { portProblem } from '../../../gateway/cli/start/port-problem.ts';
import { asOtherUser } from '../../support/as-other-user.ts';

test('a port of another process is reported as in use, and an invalid port is named', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  expect(await portProblem('PORT', `${port}`)).toBe(`PORT ${port} is in use: set PORT to another port.`);
  expect(await portProblem('PORT', '80a')).toContain('it must be a port');
});

test('a port that this user may not open is not reported as in use', async () => {
  const output = await asOtherUser(
    ['gateway/cli/start/port-problem.ts'],
    "console.log(await modules.portProblem('PORT', '1'));",
  );
  // In some containers, an unprivileged user may listen on every port.
  const isPrivileged = Number(readFileSync('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'utf8')) > 1;
  const refused =
    'PORT 1 cannot be listened on (listen EACCES: permission denied 127.0.0.1:1): set PORT to another port.';
  expect(output.trim()).toBe(isPrivileged ? refused : 'undefined');
});
