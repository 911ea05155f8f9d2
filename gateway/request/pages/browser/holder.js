// The page for holders of keys. The entered key stays in a variable of this module and is sent only to the page's origin.

/** @typedef {{ name: string, limit: number, used: number, remaining: number, resetAt: string }} Window */
/** @typedef {Record<string, number>} Limits */
/**
 * @typedef {{
 *   id: string, plan: string, windows: Window[],
 *   ban?: { untilAt: string, reason: string },
 *   grant?: { limits?: Limits, noBrownouts?: true, fromAt?: string, untilAt: string },
 *   upcoming?: { from: string, limits: Limits }[],
 *   secret: { expiresAt?: string, canRotate?: true }
 * }} State
 */
/**
 * @typedef {{
 *   at: string, offered: number, admitted: number, refused: Record<string, number>, banned: number, undecided?: number, units?: number,
 *   unauthorized?: number
 * }} Row
 */
/**
 * @typedef {{
 *   operationId: string, method: string, path: string, deprecatedAt?: string, sunsetAt?: string, successor?: string,
 *   requests: number, lastHourAt: string
 * }} DeprecatedCall
 */
/** @typedef {{ state: State, hours: Row[], days: Row[], deprecated: DeprecatedCall[], nowMs: number }} Shown */

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const timeoutMs = 15_000;

const main = /** @type {HTMLElement} */ (document.getElementById('holder'));
const form = /** @type {HTMLFormElement} */ (main.querySelector('form'));
const input = /** @type {HTMLInputElement} */ (document.getElementById('key'));
const failure = /** @type {HTMLElement} */ (document.getElementById('failure'));
const shown = /** @type {HTMLElement} */ (document.getElementById('shown'));
const limitsPath = main.dataset.limits ?? '';

/** The entered key; empty until a key is entered. */
let secret = '';
/** The number of the newest request. Responses of earlier requests are ignored. */
let asked = 0;
/** @type {'hours' | 'days'} */
let chosenChart = 'hours';

form.addEventListener('submit', (event) => {
  event.preventDefault();
  secret = input.value.trim().replace(/^bearer\s+/i, '');
  input.value = '';
  shown.hidden = true;
  void refresh();
});

async function refresh() {
  asked += 1;
  const own = asked;
  main.setAttribute('aria-busy', 'true');
  try {
    const read = await readAll();
    if (own !== asked) return;
    failure.hidden = true;
    show(read);
  } catch (error) {
    if (own !== asked) return;
    failure.textContent = error instanceof Error ? error.message : String(error);
    failure.hidden = false;
  } finally {
    if (own === asked) main.removeAttribute('aria-busy');
  }
}

/** @returns {Promise<Shown>} */
async function readAll() {
  const nowMs = Date.now();
  const days = new URLSearchParams({ step: 'day', from: new Date(nowMs - 29 * dayMs).toISOString() });
  const state = await read('');
  const [inHours, inDays, calls] = await Promise.all([
    read('/usage?step=hour'),
    read(`/usage?${days}`),
    read('/deprecated'),
  ]);
  return { state, hours: inHours.rows, days: inDays.rows, deprecated: calls.operations, nowMs };
}

/** @param {string} path relative to the path of the limits @param {string} [method] @returns {Promise<any>} */
async function read(path, method = 'GET') {
  const response = await fetch(limitsPath + path, {
    method,
    headers: { Authorization: `Bearer ${secret}`, Accept: 'application/json' },
    cache: 'no-store',
    credentials: 'omit',
    redirect: 'error',
    signal: AbortSignal.timeout(timeoutMs),
  }).catch(() => {
    throw new Error('The server did not answer. Check your connection and try again.');
  });
  const body = await response.json().catch(() => ({}));
  if (response.ok) return body;
  throw new Error(body.message ?? `The server answered with status ${response.status}.`);
}

/** @param {Shown} read */
function show(read) {
  const { state, hours, days, deprecated, nowMs } = read;
  const again = element('button', { type: 'button' }, 'Refresh');
  again.addEventListener('click', () => void refresh());
  const forget = element('button', { type: 'button' }, 'Forget the key');
  forget.addEventListener('click', () => {
    secret = '';
    asked += 1;
    shown.replaceChildren();
    shown.hidden = true;
    input.focus();
  });
  shown.replaceChildren(
    element(
      'div',
      { class: 'head' },
      element('h2', {}, state.id),
      element('p', { class: 'muted' }, `plan ${state.plan}`),
      element('p', { class: 'buttons' }, again, forget),
    ),
    ...summary(state, nowMs),
    ...(state.secret.canRotate ? [rotation()] : []),
    section('Limits', ...state.windows.map((window) => bar(window, nowMs)), ...grantOf(state)),
    usageSection(read),
    section('Refused requests', refusals(hours, days)),
    ...(deprecated.length > 0
      ? [section('Deprecated operations that this key called', deprecatedList(deprecated))]
      : []),
    ...(state.upcoming?.length ? [section('Announced changes', upcomingList(state.upcoming))] : []),
  );
  shown.hidden = false;
}

/** Makes the most important sentences: ban or used-up limit, and the expiry. @param {State} state @param {number} nowMs */
function summary({ ban, windows, secret: presented }, nowMs) {
  const spent = windows.filter(({ remaining }) => remaining === 0);
  const last = spent.toSorted((a, b) => a.resetAt.localeCompare(b.resetAt)).at(-1);
  const first = ban
    ? element('p', { class: 'bad' }, `Banned until ${instant(ban.untilAt)}. ${ban.reason}`)
    : last
      ? element(
          'p',
          { class: 'bad' },
          `The limit of this ${last.name} (${count(last.limit)}) is used up. It starts over at ${instant(last.resetAt)}.`,
        )
      : element('p', {}, 'Requests of this key are within its limits.');
  const { expiresAt } = presented;
  const isNear = expiresAt !== undefined && Date.parse(expiresAt) - nowMs < 14 * dayMs;
  const ends =
    expiresAt === undefined
      ? 'This secret does not expire.'
      : `This secret expires on ${instant(expiresAt)}.`;
  return [first, element('p', { class: isNear ? 'near' : 'muted' }, ends)];
}

/** Makes the button that replaces the presented secret. The page shows the new secret once. */
function rotation() {
  const button = /** @type {HTMLButtonElement} */ (element('button', { type: 'button' }, 'Get a new secret'));
  const result = element('p', { role: 'status' });
  button.addEventListener('click', async () => {
    if (button.dataset.asked === undefined) {
      button.dataset.asked = '';
      button.textContent = 'Get a new secret now: the present one ends in 24 hours';
      return;
    }
    button.disabled = true;
    try {
      const rotated = await read('/rotate', 'POST');
      secret = rotated.secret;
      button.hidden = true;
      result.replaceChildren(
        'Your new secret, which is shown only now: ',
        element('code', {}, rotated.secret),
        ` The old secret is valid until ${instant(rotated.oldEndsAt)}.`,
      );
    } catch (error) {
      button.disabled = false;
      result.textContent = error instanceof Error ? error.message : String(error);
    }
  });
  return element('div', { class: 'rotation' }, button, result);
}

/** @param {Window} window @param {number} nowMs */
function bar({ name, limit, used, remaining, resetAt }, nowMs) {
  const part = Math.min(1, used / limit);
  const fill = element('span', { class: part >= 1 ? 'fill full' : part >= 0.8 ? 'fill almost' : 'fill' });
  fill.style.width = `${100 * part}%`;
  const inS = Math.max(0, Math.ceil((Date.parse(resetAt) - nowMs) / 1_000));
  const when = inS < 120 ? `in ${inS} s` : `at ${instant(resetAt)}`;
  return element(
    'div',
    { class: 'window' },
    element('span', {}, `this ${name}`),
    element('span', { class: 'bar', 'aria-hidden': 'true' }, fill),
    element('span', {}, `${count(used)} of ${count(limit)} used, ${count(remaining)} left`),
    element('span', { class: 'muted' }, `starts over ${when}`),
  );
}

/** @param {State} state */
function grantOf({ grant }) {
  if (grant === undefined) return [];
  const from = grant.fromAt === undefined ? '' : `from ${instant(grant.fromAt)} `;
  const until = `${from}until ${instant(grant.untilAt)}`;
  const texts = [
    grant.limits && `Other limits are granted ${until}: ${limitsText(grant.limits)}.`,
    grant.noBrownouts && `This key may call operations during their brownouts ${until}.`,
  ];
  return texts.flatMap((text) => (text ? [element('p', {}, text)] : []));
}

/** @param {Shown} read */
function usageSection(read) {
  const body = element('div', {});
  const choose = (/** @type {'hours' | 'days'} */ which) => {
    chosenChart = which;
    for (const [name, button] of buttons) button.setAttribute('aria-pressed', String(name === which));
    body.replaceChildren(...(which === 'hours' ? chartOfHours(read) : chartOfDays(read)));
  };
  /** @type {['hours' | 'days', HTMLElement][]} */
  const buttons = [
    ['hours', element('button', { type: 'button' }, 'Last 24 hours')],
    ['days', element('button', { type: 'button' }, 'Last 30 days')],
  ];
  for (const [name, button] of buttons) button.addEventListener('click', () => choose(name));
  choose(chosenChart);
  return section('Usage', element('p', { class: 'buttons' }, ...buttons.map(([, button]) => button)), body);
}

/** @param {Shown} read */
function chartOfHours({ hours, state, nowMs }) {
  const end = Math.floor(nowMs / hourMs) * hourMs;
  const places = Array.from({ length: 24 }, (_, i) => end - (23 - i) * hourMs);
  const limit = state.windows.find(({ name }) => name === 'hour')?.limit;
  return chart({
    places,
    rows: hours,
    limit,
    unit: 'hour',
    label: (atMs) => new Date(atMs).toISOString().slice(11, 16),
  });
}

/** @param {Shown} read */
function chartOfDays({ days, state, nowMs }) {
  const end = Math.floor(nowMs / dayMs) * dayMs;
  const places = Array.from({ length: 30 }, (_, i) => end - (29 - i) * dayMs);
  const limit = state.windows.find(({ name }) => name === 'day')?.limit;
  return chart({
    places,
    rows: days,
    limit,
    unit: 'day',
    label: (atMs) => new Date(atMs).toISOString().slice(5, 10),
  });
}

/**
 * Makes a chart with a column for each hour or day and a line at the limit, and a table with the same figures.
 *
 * @param {{ places: number[], rows: Row[], limit: number | undefined, unit: string, label: (atMs: number) => string }} drawn
 */
function chart({ places, rows, limit, unit, label }) {
  const byPlace = new Map(rows.map((row) => [Date.parse(row.at), row]));
  const columns = places.map((atMs) => ({ atMs, row: byPlace.get(atMs) }));
  const most = Math.max(1, ...columns.map(({ row }) => Math.max(row?.offered ?? 0, chargedOf(row))));
  // The line is omitted if the limit is far above the columns, because the columns would be too small to see.
  const drawnLimit = limit !== undefined && limit <= 4 * most ? limit : undefined;
  const top = Math.max(most, drawnLimit ?? 0);
  const plot = element('div', { class: 'plot', 'aria-hidden': 'true' });
  for (const { atMs, row } of columns) {
    const admitted = element('span', { class: 'admitted' });
    const refused = element('span', { class: 'refused' });
    admitted.style.height = `${(100 * chargedOf(row)) / top}%`;
    refused.style.height = `${(100 * refusedOf(row)) / top}%`;
    const title = `${label(atMs)}: ${count(row?.admitted ?? 0)} admitted, ${count(refusedOf(row))} refused`;
    plot.append(element('span', { class: 'column', title }, refused, admitted));
  }
  if (drawnLimit !== undefined) {
    const line = element('span', { class: 'limit' }, element('span', {}, `limit ${count(drawnLimit)}`));
    line.style.bottom = `${(100 * drawnLimit) / top}%`;
    plot.append(line);
  }
  const [first, last] = [places[0] ?? 0, places.at(-1) ?? 0];
  const sums = { admitted: sumOf(rows, ({ admitted }) => admitted), refused: sumOf(rows, refusedOf) };
  const limitText = limit === undefined ? '' : ` The limit is ${count(limit)} a ${unit}.`;
  return [
    element(
      'p',
      {},
      `${count(sums.admitted)} requests were admitted and ${count(sums.refused)} refused.${limitText}`,
    ),
    plot,
    element(
      'p',
      { class: 'axis muted', 'aria-hidden': 'true' },
      element('span', {}, label(first)),
      element('span', {}, `${label(last)} UTC`),
    ),
    element(
      'details',
      {},
      element('summary', {}, 'The figures as a table'),
      table(
        [`${unit} (UTC)`, 'admitted', 'refused'],
        columns
          .filter(({ row }) => row !== undefined)
          .map(({ atMs, row }) => [label(atMs), count(row?.admitted ?? 0), count(refusedOf(row))]),
      ),
    ),
  ];
}

/** @param {Row | undefined} row */
function refusedOf(row) {
  return row === undefined ? 0 : row.offered - row.admitted;
}

/**
 * Returns the units that were charged to the windows. A request is one unit unless its operation has a cost.
 *
 * @param {Row | undefined} row
 */
function chargedOf(row) {
  return row?.units ?? row?.admitted ?? 0;
}

/** @param {Row[]} rows @param {(row: Row) => number} figureOf */
function sumOf(rows, figureOf) {
  return rows.reduce((sum, row) => sum + figureOf(row), 0);
}

/** Makes a table of the refused requests by reason. @param {Row[]} hours @param {Row[]} days */
function refusals(hours, days) {
  const [day, month] = [reasonsOf(hours), reasonsOf(days)];
  const reasons = [...new Set([...day.keys(), ...month.keys()])];
  if (reasons.length === 0) return element('p', {}, 'No request was refused within the last 30 days.');
  return table(
    ['reason', 'last 24 hours', 'last 30 days'],
    reasons.map((reason) => [
      reason,
      count(day.get(reason) ?? 0),
      count(month.get(reason) ?? day.get(reason) ?? 0),
    ]),
  );
}

/** @param {Row[]} rows */
function reasonsOf(rows) {
  /** @type {Map<string, number>} */
  const reasons = new Map();
  const add = (/** @type {string} */ reason, /** @type {number | undefined} */ requests) => {
    if (requests) reasons.set(reason, (reasons.get(reason) ?? 0) + requests);
  };
  for (const { refused, banned, undecided, unauthorized } of rows) {
    for (const [limit, requests] of Object.entries(refused)) {
      add(limit === 'concurrent' ? 'limit of concurrent requests' : `limit of a ${limit}`, requests);
    }
    add('banned', banned);
    add('limits could not be checked', undecided);
    add('secret was not valid', unauthorized);
  }
  return reasons;
}

/** @param {DeprecatedCall[]} operations */
function deprecatedList(operations) {
  return table(
    ['operation', 'requests in 30 days', 'ends', 'use instead'],
    operations.map(({ method, path, requests, sunsetAt, successor }) => [
      `${method} ${path}`,
      count(requests),
      sunsetAt === undefined ? 'no date yet' : instant(sunsetAt),
      successor ?? '',
    ]),
  );
}

/** @param {NonNullable<State['upcoming']>} changes */
function upcomingList(changes) {
  return element(
    'ul',
    {},
    ...changes.map(({ from, limits }) => element('li', {}, `From ${instant(from)}: ${limitsText(limits)}`)),
  );
}

/** Formats limits, for example "60 a minute, 1,000 a day". @param {Limits} limits */
function limitsText(limits) {
  return Object.entries(limits)
    .map(([name, limit]) => `${count(limit)} a ${name.replace(/^per/, '').toLowerCase()}`)
    .join(', ');
}

/** @param {string[]} head @param {string[][]} rows */
function table(head, rows) {
  return element(
    'div',
    { class: 'scrolls', tabindex: '0', role: 'group', 'aria-label': head.join(', ') },
    element(
      'table',
      {},
      element('thead', {}, element('tr', {}, ...head.map((name) => element('th', { scope: 'col' }, name)))),
      element(
        'tbody',
        {},
        ...rows.map((row) => element('tr', {}, ...row.map((cell) => element('td', {}, cell)))),
      ),
    ),
  );
}

/** @param {string} title @param {...HTMLElement} content */
function section(title, ...content) {
  return element('section', {}, element('h3', {}, title), ...content);
}

/**
 * Makes an element. Text becomes text nodes, so text of a response never becomes markup.
 *
 * @param {string} name @param {Record<string, string>} attributes @param {...(HTMLElement | string)} content
 */
function element(name, attributes, ...content) {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.append(...content);
  return made;
}

/** @param {number} number */
function count(number) {
  return number.toLocaleString('en-US');
}

/** Formats an instant, for example "2026-11-24 15:00 UTC". @param {string} iso */
function instant(iso) {
  return `${new Date(iso).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
