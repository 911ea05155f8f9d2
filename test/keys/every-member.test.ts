import { expect, it } from 'vitest';
import type * as z from 'zod';
import { loadKeys } from '../../gateway/cli/keys/file/edit-keys.ts';
import { importToFile, movedJson, movedKey, parseExport } from '../../gateway/cli/keys/transfer/transfer.ts';
import { keySchema } from '../../gateway/keys/key-schema.ts';
import { lastChange, startGateways } from '../admin/keys/change/change-fixture.ts';
import { configFolder, digestOf, mainDocument } from '../support/config-folder.ts';

/** Each member of the schema gets the first of these values that the member's schema accepts. */
const groups = { reports: { operations: ['listPets'], perMinute: 5 } };
const candidates = [
  ...['noted', 7, true, ['listPets'], { perMinute: 60 }, groups],
  ...[['192.0.2.0/24'], '2099-01-31', [{ from: '2099-01-31', plan: 'free' }]],
];

type Members = Readonly<Record<string, unknown>>;

function without(members: Members, ...names: readonly string[]): Members {
  return Object.fromEntries(Object.entries(members).filter(([name]) => !names.includes(name)));
}

const schemas = without(keySchema.shape, 'id', 'secrets', 'plan') as Readonly<Record<string, z.ZodType>>;
const generated = Object.entries(schemas).map(([name, schema]) => {
  const value = candidates.find((one) => schema.safeParse(one).success);
  if (value === undefined) throw new Error(`no candidate is a valid ${name}: add one`);
  return [name, value] as const;
});
const members: Members = { plan: 'enterprise', ...Object.fromEntries(generated) };
const ofNewKey = without(members, 'disabled');
/**
 * The response for a single key shows the limits in `windows`. The member `state` of the response shows whether the key
 * is disabled.
 */
const shown = without(members, 'limits', 'disabled');
const removable = Object.keys(schemas).filter((name) => name !== 'disabled');

it('every member of a key survives YAML, settings, issue, change, export, import and the record of changes', async () => {
  const keysFile = [{ id: 'in-yaml', ...members, secrets: [{ sha256: digestOf('a') }] }];
  const { gateways } = await startGateways(1, { keys: keysFile });
  const { gateways: others } = await startGateways(1);
  const [gateway, other] = [gateways[0], others[0]];
  if (gateway === undefined || other === undefined) throw new Error('no gateway was started');

  expect((await gateway.ask('GET', '/settings')).body.keys[0]).toMatchObject(without(members, 'limits'));
  expect((await gateway.ask('GET', '/keys/in-yaml')).body).toMatchObject({ ...shown, definition: members });

  const issued = await gateway.ask('POST', '/keys', { id: 'issued', ...ofNewKey });
  expect(issued).toMatchObject({ status: 201, body: ofNewKey });
  expect(await lastChange(gateway)).toMatchObject({ action: 'create', after: ofNewKey });
  expect((await gateway.ask('GET', '/keys/issued')).body).toMatchObject({ ...shown, definition: ofNewKey });

  await gateway.ask('POST', '/keys', { id: 'changed', plan: 'pro' });
  const changed = await gateway.ask('PATCH', '/keys/changed', members);
  expect(changed).toMatchObject({ status: 200, body: members });
  expect(await lastChange(gateway)).toMatchObject({ before: { plan: 'pro' }, after: members });

  const { keys } = (await gateway.ask('GET', '/directory')).body;
  expect(keys).toMatchObject([
    { id: 'changed', ...members },
    { id: 'issued', ...ofNewKey },
  ]);
  const imported = await other.ask('POST', '/directory', { keys });
  expect(imported.body).toEqual({ created: 2, unchanged: 0, refused: [] });
  expect((await other.ask('GET', '/directory')).body.keys).toEqual(keys);
  for (const name of removable) {
    const differing = keys.map((key: Members) => without(key, name));
    const { refused } = (await other.ask('POST', '/directory', { keys: differing })).body;
    expect([name, refused.length]).toEqual([name, 2]);
  }

  const removed = Object.fromEntries(removable.map((name) => [name, null]));
  const bare = await gateway.ask('PATCH', '/keys/changed', { ...removed, plan: 'free' });
  expect([bare.status, removable.filter((name) => name in bare.body)]).toEqual([200, []]);
  expect(await lastChange(gateway)).toMatchObject({ before: ofNewKey, after: { plan: 'free' } });

  await gateway.ask('DELETE', '/keys/issued');
  expect(await lastChange(gateway)).toMatchObject({ action: 'delete', before: ofNewKey });
});

it('every member of a key survives an export into a keys file, and distinguishes two keys', async () => {
  const { file } = configFolder({ 'tollgate.yaml': mainDocument, 'keys.yaml': '[]\n' });
  const configuration = { file, env: {} };
  const noGateway = () => {
    throw new Error('a configuration without a directory asks no gateway');
  };
  const keys = [{ id: 'moved', ...members, secrets: [{ sha256: digestOf('a') }] }];
  const parsed = parseExport(JSON.stringify({ keys }), 'keys.json');
  expect((await importToFile(configuration, parsed.keys, noGateway)).imported).toMatchObject({ created: 1 });
  expect(loadKeys(configuration).written.map((one) => movedJson(movedKey(one)))).toEqual(keys);
  expect((await importToFile(configuration, parsed.keys, noGateway)).imported).toMatchObject({
    unchanged: 1,
  });
  for (const name of Object.keys(schemas)) {
    const twice = JSON.stringify({ keys: [...keys, ...keys.map((key) => without(key, name))] });
    expect([name, parseExport(twice, 'keys.json').ambiguous.length]).toEqual([name, 1]);
  }
});
