import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';

test('replace-gateways.sh prints that no gateway is running', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-docker-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  // `docker compose ps --quiet gateway` prints an empty output when no gateway runs.
  const docker = join(folder, 'docker');
  writeFileSync(docker, '#!/bin/sh\n');
  chmodSync(docker, 0o755);
  const env = { PATH: `${folder}:${process.env.PATH}` };
  const { status, stderr } = spawnSync('config/replace-gateways.sh', { env, encoding: 'utf8' });
  expect({ status, stderr }).toEqual({
    status: 1,
    stderr: 'No gateway is running: docker compose up --detach\n',
  });
});
