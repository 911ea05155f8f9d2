import { expect, it, onTestFinished } from 'vitest';
import { startGatewayHere } from '../support/gateway-here.ts';
import { makeKey, testConfig } from '../support/gateway-process.ts';

it('requests of a key that all begin with another path than baseUrl get a hint in the log', async () => {
  const key = makeKey();
  const config = testConfig({ upstream: { url: 'http://127.0.0.1:1' }, keys: [key.entry] });
  const gateway = await startGatewayHere(config, { tuning: { bounds: { basePathHintMs: 200 } } });
  onTestFinished(async () => void (await gateway.stop()));
  const headers = { authorization: `Bearer ${key.secret}` };
  const send = (path: string) => fetch(`http://127.0.0.1:${gateway.port}${path}`, { headers });
  for (const path of ['/api/pets', '/api', `/${'s'.repeat(40)}`]) expect((await send(path)).status).toBe(404);
  const { msg } = await gateway.line((line) => String(line.msg).includes('is `baseUrl` right?'));
  expect(msg).toMatch(
    /^\d+ requests? in the last minute began with \/api, none with \/v1, the path of `baseUrl`: is `baseUrl` right\?$/,
  );
});
