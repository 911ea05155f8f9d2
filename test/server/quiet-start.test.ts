import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';
import { expect, it } from 'vitest';

/** Imports what a gateway without Redis and operators loads, and prints the packages and the parts of Node that this has loaded. */
const script = `
import { registerHooks } from 'node:module';
const packages = new Set();
registerHooks({
  load(url, context, next) {
    packages.add(/.*node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url)?.[1]);
    return next(url, context);
  },
});
for (const file of ['main.ts', 'server/gateway.ts']) await import('${resolve('gateway')}/' + file);
console.log(JSON.stringify({ packages: [...packages], ofNode: process.moduleLoadList }));`;

it('a gateway without Redis, operators and a terminal starts without the code for them', () => {
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
  const { packages, ofNode } = JSON.parse(output);
  expect(packages).toContain('pino');
  const late = ['zod', 'ioredis', '@prometheus-io/client', 'pino-pretty', 'js-yaml', 'yaml', 'commander'];
  expect(packages.filter((name: string) => late.includes(name))).toEqual([]);
  // Node's `fetch`, which an import of `node:http` would load.
  expect(ofNode.filter((name: string) => name.includes('undici'))).toEqual([]);
});
