import { expect, it, onTestFinished } from 'vitest';
import { axeFindings, openWithToken, startBrowser, watchedPage } from '../support/browser.ts';
import { makeKey } from '../support/gateway-process.ts';
import { until } from '../support/until.ts';
import { withinOneMinute } from '../support/within-one-minute.ts';
import { longGroup, plan, reports, startGroups, startMs, token } from './groups-fixture.ts';

/** What clients and operators see of groups of operations. */

it('a response has the windows of its request only, and X-RateLimit-* is the tightest of them', async () => {
  const { send } = await startGroups();
  const minuteEnd = startMs / 1_000 + 60;
  expect((await send('/pets')).fields).toEqual({
    left: 'minute;r=59, day;r=999',
    policy: 'minute;q=60, day;q=1000',
    x: [60, 59, minuteEnd],
  });
  expect((await send('/report')).fields).toEqual({
    left: 'minute;r=58, day;r=998, reports-minute;r=4, reports-hour;r=7',
    policy: 'minute;q=60, day;q=1000, reports-minute;q=5, reports-hour;q=8',
    x: [5, 4, minuteEnd],
  });
  expect((await send('/export')).fields).toEqual({
    left: 'minute;r=56, day;r=996, reports-minute;r=2, reports-hour;r=5, exports-day;r=18',
    policy: 'minute;q=60, day;q=1000, reports-minute;q=5, reports-hour;q=8, exports-day;q=20',
    x: [5, 2, minuteEnd],
  });
  // No operation: 404 is charged in no group.
  expect((await send('/nothing')).fields.left).toBe('minute;r=55, day;r=995');
});

it('a refusal names the group, charges nothing, and its Retry-After is the time of the next admission', async () => {
  const { send, wait, lines } = await startGroups();
  for (let request = 0; request < 4; request++) expect((await send('/report')).status).toBe(200);
  const dear = await send('/export');
  expect([dear.status, dear.body.message, dear.field('retry-after')]).toEqual([
    429,
    "This request costs 2 units; 1 of this minute's 5 for the group reports is left. Retry in 60 s.",
    '60',
  ]);
  expect((await send('/report')).status).toBe(200);
  const refused = await send('/report');
  expect([refused.status, refused.body.message]).toEqual([
    429,
    'All 5 units of this minute for the group reports are used. Retry in 60 s.',
  ]);
  expect(refused.fields.left).toBe('minute;r=55, day;r=995, reports-minute;r=0, reports-hour;r=3');
  expect(lines.at(-1)).toMatchObject({
    decision: 'refused',
    window: 'reports-minute',
    limit: 5,
    remaining: 0,
  });
  // Operations that are in no group are admitted.
  expect((await send('/pets')).status).toBe(200);
  wait(59_999);
  expect((await send('/report')).status).toBe(429);
  wait(1);
  for (let request = 0; request < 3; request++) expect((await send('/report')).status).toBe(200);
  const ofHour = await send('/report');
  expect([ofHour.status, ofHour.body.message]).toEqual([
    429,
    'All 8 units of this hour for the group reports are used. Retry in 3540 s.',
  ]);
  wait(3_540_000 - 1);
  expect((await send('/report')).status).toBe(429);
  wait(1);
  expect((await send('/report')).status).toBe(200);
});

it('a cost above a limit of a group gets an uncharged 403 that names the group', async () => {
  const { send } = await startGroups();
  const { status, body, fields } = await send('/yearly');
  expect([status, body.code, body.message]).toEqual([
    403,
    'operation_not_allowed',
    'This request costs 25 units, and the API key may use at most 20 in a day for the group exports.',
  ]);
  expect(fields.left).toBe('minute;r=60, day;r=1000, exports-day;r=20');
});

it('the admin API has the windows of each group', async () => {
  const { send, show } = await startGroups();
  for (const path of ['/report', '/export', '/pets']) await send(path);
  const at = (ms: number) => startMs + ms;
  const windows = [
    { name: 'minute', limit: 60, used: 4, remaining: 56, resetMs: at(60_000) },
    { name: 'day', limit: 1_000, used: 4, remaining: 996, resetMs: at(86_400_000) },
    { name: 'reports-minute', limit: 5, used: 3, remaining: 2, resetMs: at(60_000) },
    { name: 'reports-hour', limit: 8, used: 3, remaining: 5, resetMs: at(3_600_000) },
    { name: 'exports-day', limit: 20, used: 2, remaining: 18, resetMs: at(86_400_000) },
  ];
  const shown = await show('/keys/acme');
  expect(shown.windows).toEqual(windows);
  expect((await show('/keys')).keys).toMatchObject([{ id: 'acme', state: 'ok', windows: shown.windows }]);
});

it('a key with a group of its own has this group in place of the group of its plan', async () => {
  const own = { operations: ['createReport'], perDay: 7 };
  const key = makeKey({ id: 'acme', plan: 'small', groups: { reports: own } });
  const { show } = await startGroups({ key });
  const { windows } = await show('/keys/acme');
  expect(windows.map(({ name, limit }: { name: string; limit: number }) => [name, limit])).toEqual([
    ['minute', 60],
    ['day', 1_000],
    ['exports-day', 20],
    ['reports-day', 7],
  ]);
});

it('a key with a used-up group is limited, and the sentence says what it may call and when', async () => {
  const { send, show, wait } = await startGroups();
  for (let request = 0; request < 6; request++) await send('/report');
  const shown = await show('/keys/acme');
  expect([shown.state, shown.why.sentence]).toEqual([
    'limited',
    expect.stringMatching(
      /^acme \(small\) has used all 5 units of this minute for the group reports, which starts over at 00:01:00 UTC\. It may call other operations: it has used 5 of 60 units of this minute, 5 of 1,000 units of this day and 0 of 20 units of this day for the group exports\./,
    ),
  ]);
  wait(60_000);
  for (let request = 0; request < 3; request++) await send('/report');
  for (let request = 0; request < 57; request++) await send('/pets');
  // The group has no room for an hour. Other operations may be called again in the next minute.
  expect((await show('/keys/acme')).why.sentence).toMatch(
    /^acme \(small\) has used all 60 units of this minute and may call again at 00:02:00 UTC\. It has also used all 8 units of this hour for the group reports, which starts over at 01:00:00 UTC\./,
  );
});

it('the pages for operators show the limits of groups', async () => {
  const browser = await startBrowser();
  onTestFinished(() => browser.close());
  await withinOneMinute(30_000);
  const { send, show, adminPort } = await startGroups({
    plans: {
      small: {
        ...plan,
        groups: { ...plan.groups, [longGroup]: { operations: ['yearly'], perDay: 900 } },
        changes: [{ from: '2099-01-01', perMinute: 60, groups: { reports } }],
      },
    },
    // The pages request usage by the clock of the browser.
    atMs: Date.now(),
  });
  for (let request = 0; request < 60; request++) await send(request < 6 ? '/report' : '/pets');
  const words = (element: Element) => (element.textContent ?? '').replaceAll(/\s+/g, ' ').trim();

  const origin = `http://127.0.0.1:${adminPort}`;
  const operator = await watchedPage(browser, origin, 1_280);
  await openWithToken(operator.page, `${origin}/keys/acme`, token.token);
  await operator.page.waitForSelector('.windows');
  expect(await operator.page.$eval('.windows', words)).toMatch(
    /reports-minute5 of 5resets .*reports-hour5 of 8resets .*exports-day0 of 20resets /,
  );
  const press = (label: string) =>
    operator.page.$$eval(
      'button',
      (buttons, text) => buttons.find(({ textContent }) => textContent === text)?.click(),
      label,
    );
  await press('Grant more…');
  await (await operator.page.waitForSelector('dialog[open] #grant-reports-minute'))?.type('9');
  expect(await operator.page.$eval('dialog[open] label[for=grant-reports-minute]', words)).toBe(
    'Requests a minute for the group reports (now 5)',
  );
  await press('Grant more');
  await until('the grant is in force', async () => (await show('/keys/acme')).windows[2].limit === 9);
  expect((await show('/keys/acme')).grant.limits).toEqual({ groups: { reports: { perMinute: 9 } } });
  await until('the page shows the grant', async () =>
    /granted 9 a minute for the group reports/.test(await operator.page.$eval('.windows', words)),
  );
  expect([await axeFindings(operator.page), operator.complaints]).toEqual([[], []]);

  // A name of 40 characters, which has no place to break, makes no page wider than a phone.
  const { page } = operator;
  await page.setViewport({ width: 390, height: 800 });
  const isWide = () => page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
  expect(await isWide()).toBe(false);
  await page.goto(`${origin}/keys`);
  await page.waitForSelector('.window.of-group');
  expect(await isWide()).toBe(false);
});
