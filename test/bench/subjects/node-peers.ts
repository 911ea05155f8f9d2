import { existsSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../support/free-port.ts';
import { startProcess, untilAnswers } from '../processes.ts';
import type { Subject } from './subject.ts';

/**
 * The Node peers, which are small programs in `../peers`. The peers are written in JavaScript, because their packages are not installed
 * with this repository and the type check would fail.
 */
export const nodePeers: readonly Subject[] = [
  createNodePeer({
    name: 'fastify stack',
    job: 'key, one window in Redis, its headers, access line, forward',
    program: 'fastify-stack.mjs',
    packages: ['fastify', '@fastify/http-proxy', '@fastify/rate-limit', '@fastify/bearer-auth'],
    wholeJob: true,
  }),
  createNodePeer({
    name: 'undici dispatch',
    job: 'forward',
    program: 'undici-dispatch.mjs',
    packages: [],
  }),
  createNodePeer({
    name: 'fast-gateway',
    job: 'forward',
    program: 'fast-gateway.mjs',
    packages: ['fast-gateway'],
  }),
  createNodePeer({
    name: 'http-proxy-3',
    job: 'forward',
    program: 'http-proxy-3.mjs',
    packages: ['http-proxy-3'],
  }),
];

interface NodePeer {
  readonly name: string;
  readonly job: string;
  readonly program: string;
  readonly packages: readonly string[];
  readonly wholeJob?: boolean;
}

function createNodePeer({ name, job, program, packages, wholeJob = false }: NodePeer): Subject {
  return {
    name,
    job,
    identifies: wholeJob,
    limits: wholeJob,
    missing: () => (packages.every(isInstalled) ? undefined : 'npm ci --prefix test/bench'),
    async start({ dir, backendPort, redisPort, credentials, subjectCpus }) {
      const port = await freePort();
      const file = fileURLToPath(new URL(`../peers/${program}`, import.meta.url));
      const options = {
        port,
        backendPort,
        redisPort,
        limits: wholeJob
          ? credentials.all.map(({ sha256, limits: { perMinute } }) => [sha256, perMinute] as const)
          : [],
        accessLog: `${dir}/${name.replaceAll(' ', '-')}.access.log`,
      };
      const optionsFile = `${dir}/${program}.json`;
      writeFileSync(optionsFile, JSON.stringify(options));
      const running = startProcess(process.execPath, [file, optionsFile], { dir, name, cpus: subjectCpus });
      const origin = `http://127.0.0.1:${port}`;
      await untilAnswers(`${origin}/v1/pets`, running);
      return { ...running, origin };
    },
  };
}

function isInstalled(name: string): boolean {
  return existsSync(new URL(`../node_modules/${name}/package.json`, import.meta.url));
}
