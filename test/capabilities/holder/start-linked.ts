import { onTestFinished } from 'vitest';
import type { Bounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { askAdmin, makeToken } from '../../support/admin-client.ts';
import type { RedisPlace } from '../../support/connect-redis.ts';
import { directoryOf } from '../../support/directory-of.ts';
import { startFleetHere } from '../../support/fleet.ts';
import { readReply } from '../../support/read-reply.ts';
import { patientStore } from '../../support/tuning.ts';

const alice = makeToken('write', 'alice');
const reader = makeToken('read', 'bob');

/** Starts two gateways with the key `acme` in the directory and with keys of a file, and functions that make and open links. */
export async function startLinked({
  keys = [],
  config = {},
  bounds = {},
  clockLeapMs = 0,
  place,
}: {
  readonly keys?: readonly object[];
  readonly config?: Record<string, unknown>;
  readonly bounds?: Partial<Bounds>;
  readonly clockLeapMs?: number;
  /** A Redis in place of the own server of the test. */
  readonly place?: RedisPlace;
} = {}) {
  const common = {
    limitsPath: '/limits',
    selfService: { rotate: true },
    admin: { host: '127.0.0.1', port: 0, tokens: [alice.entry, reader.entry] },
    ...config,
  };
  const withKeys = { keys: { file: './keys.yaml', directory: true } };
  const fleet = await startFleetHere({
    starts: Array(2).fill({ tuning: { clockLeapMs, bounds: { ...patientStore, ...bounds } } }),
    config: { ...withKeys, ...common },
    files: { 'keys.yaml': keys },
    ...(place && { place }),
  });
  onTestFinished(() => fleet.stop());
  const directory = await directoryOf({ ...(place ?? { url: fleet.redis.url }), prefix: fleet.prefix });
  onTestFinished(() => directory.close());
  await directory.issue('acme', ['secret']);

  const ask = (method: string, path: string, json?: unknown, { token } = alice, gateway = 0) =>
    askAdmin(Number(new URL(fleet.gateways[gateway]?.adminUrl ?? '').port), `/api/v1${path}`, {
      token,
      method,
      ...(json !== undefined && { json }),
    });
  /** Makes a link, and returns its token. */
  const link = async (id = 'acme', length = '7d') => {
    const made = await ask('POST', `/keys/${id}/links`, { for: length });
    if (made.status !== 201) throw new Error(made.text);
    const [, token = ''] = String(made.body.url).split('#');
    return { token, url: String(made.body.url), ...made.body.link } as {
      token: string;
      url: string;
      digestStart: string;
      untilAt: string;
    };
  };
  /** Sends a request with a token or a secret to one of the gateways. */
  const open = async (
    token: string,
    path = '/limits',
    { process = 1, ...init }: RequestInit & { readonly process?: number } = {},
  ) => {
    const headers = { authorization: `Bearer ${token}`, ...init.headers };
    return readReply(await fetch(`${fleet.origins[process]}${path}`, { ...init, headers }));
  };
  return { fleet, directory, ask, link, open, alice, reader };
}
