import { expect, it } from 'vitest';
import type { KeySources } from '../../../gateway/admin/keys/key-sources.ts';
import { callerNamer } from '../../../gateway/admin/operations/callers-view.ts';
import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { makeKey } from '../../support/gateway-process.ts';
import { settingsOf } from '../../support/settings-of.ts';

it('names the callers whose keys can be read, also while the server with another key is away', async () => {
  const acme = makeKey({ id: 'acme', plan: 'pro', name: 'Acme' });
  const settings = await settingsOf({ upstream: { url: 'http://127.0.0.1:1' }, keys: [acme.entry] });
  const sources = {
    settings: () => settings,
    directory: {
      readMany: async (ids: readonly string[]) => ({ kind: 'found', keys: ids.map(() => 'unknown') }),
    },
    nowMs: () => 0,
    bounds: defaultBounds,
  } as unknown as KeySources;
  const calls = { requests: 1, clientErrors: 0, serverErrors: 0, lastMs: 1, refusals: new Map() };
  const callers = ['acme', 'issued'].map((keyId) => ({ keyId, ...calls }));
  const named = callers.map(await callerNamer(sources, callers));
  expect(named.map(({ id, name, plan }) => ({ id, name, plan }))).toEqual([
    { id: 'acme', name: 'Acme', plan: 'pro' },
    { id: 'issued', name: undefined, plan: undefined },
  ]);
});
