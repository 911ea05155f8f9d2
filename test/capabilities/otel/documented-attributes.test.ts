import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { okResponse, reset } from '../../support/recording-backend.ts';
import { limitedKey, startTraced } from './start-traced.ts';

const page = readFileSync(new URL('../../../config/guide/otel.md', import.meta.url), 'utf8');

/** The attributes in the table of the page, each with the spans that have it. */
const documented = [
  ...page.matchAll(/^\| (`[a-z_.]+`(?:, `[a-z_.]+`)*) \| (server|client|both) \|/gm),
].flatMap(([, names = '', of = '']) =>
  [...names.matchAll(/`([a-z_.]+)`/g)].flatMap(([, name]) =>
    (of === 'both' ? ['server', 'client'] : [of]).map((kind) => `${kind} ${name}`),
  ),
);

it('the table of attributes has those of all kinds of spans, and no other', async () => {
  const kept = await startTraced({ otel: { sample: '0 %' } });
  for (let sent = 0; sent < 2; sent++) await kept.send('/pets', { secret: limitedKey.secret });
  const { send, spans, backend } = await startTraced();
  await send();
  backend.react = (_request, socket) => {
    if (backend.requests.length === 2) reset(socket);
    else socket.write(okResponse('', 500));
  };
  await send('/pets/7');
  await send('/pets', { method: 'PROPFIND' });
  const all = [...(await kept.spans(1)), ...(await spans(6))];
  const shown = new Set(
    all.flatMap(({ kind, attributes }) => Object.keys(attributes).map((name) => `${kind} ${name}`)),
  );
  // No operation of an API document has such a method, so no target gets one.
  expect([...shown, 'client http.request.method_original'].toSorted()).toEqual(documented.toSorted());
});
