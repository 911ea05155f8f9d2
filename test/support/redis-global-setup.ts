import { access } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TestProject } from 'vitest/node';
import { startRedis, waitUntilReady } from './start-redis.ts';

/**
 * One real Redis for the whole run, for tests that do not need a Redis of their own: `TEST_REDIS_URL`, a container, or a server of this
 * machine. `redisUrl()` in `redis.ts` returns the address of this Redis.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const redis = (await givenRedis()) ?? (await containedRedis()) ?? (await startRedis());
  project.provide('redisUrl', redis.url);
  return redis.stop;
}

declare module 'vitest' {
  interface ProvidedContext {
    redisUrl: string;
  }
}

interface RunningRedis {
  readonly url: string;
  stop(): Promise<void>;
}

async function givenRedis(): Promise<RunningRedis | undefined> {
  const url = process.env.TEST_REDIS_URL;
  if (url === undefined || url === '') return undefined;
  await waitUntilReady(url);
  return { url, stop: () => Promise.resolve() };
}

const image = 'redis:7.4-bookworm';
/** A container engine that has stopped during the run does not respond. */
const containerStopMaxMs = 10_000;

/**
 * Starts a container only when a container engine and the image are already present, because a test run downloads nothing from a registry.
 */
async function containedRedis(): Promise<RunningRedis | undefined> {
  if (!(await mayHaveDocker())) return undefined;
  // Testcontainers' reaper would require a second image. The reaper is not needed, because the returned function stops the container.
  process.env.TESTCONTAINERS_RYUK_DISABLED ??= 'true';
  const { GenericContainer, getContainerRuntimeClient, ImageName } = await import('testcontainers');
  try {
    const runtime = await getContainerRuntimeClient();
    if (!(await runtime.image.exists(ImageName.fromString(image)))) return undefined;
  } catch {
    return undefined;
  }
  const container = await new GenericContainer(image)
    .withCommand(['redis-server', '--save', '', '--appendonly', 'no'])
    .withExposedPorts(6379)
    .start();
  const url = `redis://${container.getHost()}:${container.getMappedPort(6379)}`;
  await waitUntilReady(url);
  console.log(`tests: Redis runs in a container (${image})`);
  return {
    url,
    async stop() {
      await Promise.race([container.stop(), sleep(containerStopMaxMs, undefined, { ref: false })]);
    },
  };
}

async function mayHaveDocker(): Promise<boolean> {
  if (process.env.DOCKER_HOST !== undefined) return true;
  return access('/var/run/docker.sock').then(
    () => true,
    () => false,
  );
}
