import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { type Fleet, originOf, readiness, startFleetHere } from '../support/fleet.ts';
import {
  makeCustomKey,
  makeKey,
  type RunningGateway,
  startGateway,
  testConfig,
} from '../support/gateway-process.ts';
import { patientGateway } from '../support/tuning.ts';
import { until } from '../support/until.ts';

const apiDocument = parse(readFileSync(new URL('../../config/openapi.yaml', import.meta.url), 'utf8'));
const tuning = { bounds: patientGateway };
const kept = makeCustomKey(1_000_000, 1_000);
const revoked = makeKey();
let fleet: Fleet<RunningGateway>;

beforeAll(async () => {
  fleet = await startFleetHere({
    // The second gateway reads its configuration from a folder with symbolic links, like a ConfigMap that Kubernetes mounts.
    starts: [{ tuning }, { tuning, layout: 'mounted' }],
    config: { api: 'api.yaml', keys: [kept.entry, revoked.entry] },
    files: { 'api.yaml': apiDocument },
  });
});
afterAll(() => fleet.stop());

async function get(gateway: RunningGateway, secret: string): Promise<Response> {
  return fetch(`${originOf(gateway)}/v1/pets`, { headers: { Authorization: `Bearer ${secret}` } });
}

describe('an edit of the configuration', () => {
  it('that revokes a key reaches every gateway, and affects no other key', async () => {
    for (const gateway of fleet.gateways) expect((await get(gateway, revoked.secret)).status).toBe(200);
    await fleet.editConfig({ keys: [kept.entry] });
    for (const gateway of fleet.gateways) {
      await until(
        'the revoked key is refused',
        async () => (await get(gateway, revoked.secret)).status === 401,
      );
      expect((await get(gateway, kept.secret)).status).toBe(200);
    }
  });

  it('that is broken changes nothing, and is reported with file, line, column and a caret', async () => {
    const usedBefore = await used();
    const broken = stringify({
      ...parse(stringify(fleet.config)),
      plans: { free: { perMinute: -1, perDay: 10 } },
    });
    const line = broken.split('\n').findIndex((text) => text.includes('perMinute: -1')) + 1;
    await Promise.all(fleet.gateways.map((gateway) => gateway.editConfig(broken)));
    for (const gateway of fleet.gateways) {
      const entry = await gateway.line(({ msg }) => String(msg).includes('not reloaded'));
      expect(entry.msg).toContain(`gateway.yaml:${line}:`);
      expect(entry.msg).toMatch(/perMinute: -1\n.*\^/);
      const { httpStatus, body } = await readiness(gateway);
      expect(httpStatus).toBe(200);
      expect(body.status).toBe('degraded');
      expect(body.config.lastError).toContain(`gateway.yaml:${line}:`);

      const response = await get(gateway, kept.secret);
      expect(response.status).toBe(200);
      expect(response.headers.get('x-ratelimit-limit')).toBe('1000');
    }
    expect(await used()).toBe(usedBefore + fleet.gateways.length);
  });

  it('that repairs the file takes effect, with unchanged counts', async () => {
    const usedBefore = await used();
    const raised = { ...kept.entry, limits: { perMinute: 1_000_000, perDay: 2_000 } };
    await fleet.editConfig({ keys: [raised] });
    for (const gateway of fleet.gateways) {
      await until('the configuration is sound', async () => (await readiness(gateway)).body.status === 'ok');
    }
    for (const [index, gateway] of fleet.gateways.entries()) {
      const { headers } = await get(gateway, kept.secret);
      expect(headers.get('x-ratelimit-limit')).toBe('2000');
      expect(headers.get('x-ratelimit-remaining')).toBe(String(2_000 - usedBefore - index - 1));
    }
  });

  it('takes effect while another file is broken, which keeps its last valid content and is named', async () => {
    const added = makeKey();
    for (const { configDir } of fleet.gateways) await writeFile(join(configDir, 'api.yaml'), 'paths: {');
    for (const [disabled, wanted] of [
      [false, 200],
      [true, 401],
    ] as const) {
      await fleet.editConfig({ keys: [kept.entry, { ...added.entry, disabled }] });
      for (const gateway of fleet.gateways) {
        await until(
          `the key is answered ${wanted}`,
          async () => (await get(gateway, added.secret)).status === wanted,
        );
      }
    }
    for (const gateway of fleet.gateways) {
      const file = join(gateway.configDir, 'api.yaml');
      const { httpStatus, body } = await readiness(gateway);
      expect([httpStatus, body.status]).toEqual([200, 'degraded']);
      expect(body.reasons).toEqual([
        expect.stringMatching(
          `^${file} keeps its last valid content since 20\\S+Z: ${file}:1:9: this is not`,
        ),
      ]);
      const logged = await gateway.line(({ msg }) =>
        `${msg}`.includes(`${file} keeps its last valid content`),
      );
      expect(logged.msg).toMatch(/api\.yaml:1:9: .*\n.*paths: \{\n.*\^/);
      await writeFile(file, stringify(apiDocument));
      await until('all is well', async () => (await readiness(gateway)).body.status === 'ok');
    }
  });
});

describe('a configuration that takes long to load', { tags: 'full' }, () => {
  it('is logged with its file, and does not delay a repaired configuration', async () => {
    const config = testConfig({ upstream: { url: 'http://127.0.0.1:9', health: '/' } });
    const gateway = await startGateway(config, { tuning: { bounds: { configLoadSlowMs: 500 } } });
    try {
      // This file takes half a minute to load, so the gateway is still loading it when the test writes the correct file.
      const unknown = Array.from({ length: 1_000_000 }, (_, i) => `unknown${i}: x\n`).join('');
      await gateway.editConfig(stringify(config) + unknown);
      const slow = await gateway.line(({ msg }) => String(msg).includes('has been loading for 0.5 s'));
      expect(slow).toMatchObject({
        level: 40,
        msg: expect.stringContaining(`${gateway.configDir}/gateway.yaml`),
      });
      await gateway.editConfig({ ...config, bodyBytesMax: 1_000 });
      await gateway.line(({ msg }) => msg === 'the configuration was reloaded');
      expect(gateway.lines.filter(({ msg }) => String(msg).includes('not reloaded'))).toEqual([]);
    } finally {
      await gateway.stop('SIGKILL');
    }
  });
});

async function used(): Promise<number> {
  return Number(await fleet.inspector.hget(`${fleet.prefix}:{${kept.entry.id}}`, 'dayUsed'));
}
