import { expect, it } from 'vitest';
import { makeKey } from '../../support/gateway-process.ts';
import { fileOf, startGateways } from './change/change-fixture.ts';

it('a request about a removed key names its removal by an edit or by an operator, on every route of a key', async () => {
  const acme = makeKey({ id: 'acme', plan: 'free' }).entry;
  const { gateways } = await startGateways(1, { keys: [acme] });
  const [one] = gateways;
  if (one === undefined) throw new Error('one gateway was started');
  const messages = async (id: string) => {
    const replies = await Promise.all([
      one.ask('GET', `/keys/${id}`),
      one.ask('GET', `/keys/${id}/why?at=${new Date().toISOString()}`),
      one.ask('PATCH', `/keys/${id}`, { disabled: false }),
    ]);
    return [...new Set(replies.map(({ status, body }) => `${status} ${body.message}`))];
  };
  const unknown = '404 There is no key with this id.';
  expect(await messages('nobody')).toEqual([unknown]);

  await one.ask('POST', '/keys', { id: 'umbrella', plan: 'free' });
  await one.ask('DELETE', '/keys/umbrella');
  await expect
    .poll(() => messages('umbrella'))
    .toEqual([
      expect.stringMatching(/id\. umbrella was removed at \d\d:\d\d:\d\d UTC( on \S+)? by alice\.$/),
    ]);

  await one.reload({ keys: { directory: true, file: await fileOf([]) } });
  await expect
    .poll(() => messages('acme'))
    .toEqual([
      expect.stringMatching(
        /id\. acme was removed at \d\d:\d\d:\d\d UTC( on \S+)? by an edit of the files\.$/,
      ),
    ]);
});
