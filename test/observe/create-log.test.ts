import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';

it('the log has every line when the process ends, even with a slow reader and more text than a pipe holds', async () => {
  const script = `
    const { createLog } = await import(${JSON.stringify(resolve('gateway/observe/create-log.ts'))});
    const { defaultBounds } = await import(${JSON.stringify(resolve('gateway/shared/timeouts-and-sizes.ts'))});
    const log = createLog({ bounds: { ...defaultBounds, logCloseTimeoutMs: 60_000 } });
    for (let line = 0; line < 100; line++) log.access(JSON.stringify({ line, more: 'x'.repeat(10_000) }) + '\\n');
    log.logger.info('stopped');
    process.stderr.end('closing');
    await log.close();
    process.exit(0);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = once(child, 'exit');
  await once(child.stderr, 'data');
  await sleep(100);
  const [output, [exitCode]] = await Promise.all([text(child.stdout), ended]);
  const lines = output
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(exitCode).toBe(0);
  expect(lines.slice(0, -1).map(({ line }) => line)).toEqual(Array.from({ length: 100 }, (_, line) => line));
  expect(lines.at(-1)).toMatchObject({ msg: 'stopped' });
});
