// The page for holders of keys. The entered key stays in a variable of this module and is sent only to the page's origin.

/**
 * `operations` is present for a limit of a group of operations, whose `name` is like `reports-minute`.
 *
 * @typedef {{ name: string, limit: number, used: number, remaining: number, resetAt: string, operations?: string[] }} Window
 */
/** @typedef {Record<string, any> & { groups?: Record<string, Record<string, any>> }} Limits */
/**
 * @typedef {{
 *   id: string, plan: string, windows: Window[], concurrent?: number,
 *   ban?: { untilAt: string, reason: string },
 *   grant?: { limits?: Limits, noBrownouts?: true, fromAt?: string, untilAt: string },
 *   upcoming?: { from: string, plan?: string, limits: Limits }[],
 *   credits?: { at: string, from: string, to: string, failedUnits: number, givenBack: { day: number, month: number } }[],
 *   links?: { by: string, untilAt: string }[],
 *   secret?: { expiresAt?: string, canRotate?: true }, link?: { by: string, untilAt: string }
 * }} State `link` is present in place of `secret` if a link opened the page.
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
/** @typedef {{ hours: Row[], days: Row[], deprecated: DeprecatedCall[] }} Recorded */
/**
 * The content of the page. If the usage record could not be read, `recorded` is the reason.
 *
 * @typedef {{ state: State, recorded: Recorded | string, nowMs: number }} Shown
 */

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/** The length of each window, ms. A month is longer than every column of the charts, so its exact length does not matter. */
const windowsMs = new Map([
  ['second', 1_000],
  ['minute', 60_000],
  ['hour', hourMs],
  ['day', dayMs],
  ['month', 31 * dayMs],
]);
const timeoutMs = 15_000;

const main = /** @type {HTMLElement} */ (document.getElementById('holder'));
const form = /** @type {HTMLFormElement} */ (main.querySelector('form'));
const input = /** @type {HTMLInputElement} */ (document.getElementById('key'));
const failure = /** @type {HTMLElement} */ (document.getElementById('failure'));
const shown = /** @type {HTMLElement} */ (document.getElementById('shown'));
const limitsPath = main.dataset.limits ?? '';

/** The entered key, or the token of the link that opened the page; empty without both. */
let secret = '';
/**
 * The new secret after a rotation. The page shows the new secret until the key is forgotten or another key is entered.
 *
 * @type {{ secret: string, oldEndsAt: string } | undefined}
 */
let issued;
/**
 * The `Idempotency-Key` of the request for a new secret. A request without a response is repeated with the same value.
 *
 * @type {string | undefined}
 */
let rotationId;
/** The number of the newest request. Responses of earlier requests are ignored. */
let asked = 0;
/** @type {'hours' | 'days'} */
let chosenChart = 'hours';

form.addEventListener('submit', (event) => {
  event.preventDefault();
  begin(input.value.trim().replace(/^bearer\s+/i, ''));
});

// A link that is opened in a tab with this page changes only the fragment.
addEventListener('hashchange', openByLink);

/** Takes the token of a link out of the address, so that bookmarks and copies of the address do not have it, and shows the key of the link. */
function openByLink() {
  const token = location.hash.slice(1);
  if (!isLink(token)) return;
  history.replaceState(null, '', location.pathname + location.search);
  begin(token);
}

/** @param {string} token */
function isLink(token) {
  return token.startsWith('tgl_');
}

/** Shows a key. @param {string} entered a secret of the key, or the token of a link */
function begin(entered) {
  forget();
  secret = entered;
  void refresh();
}

// The page forgets the key and the figures, because the browser could show them to another person who goes back to this page.
addEventListener('pagehide', forget);

/** Removes the key and everything that the page shows about it. */
function forget() {
  secret = '';
  issued = undefined;
  rotationId = undefined;
  asked += 1;
  input.value = '';
  failure.hidden = true;
  shown.replaceChildren();
  shown.hidden = true;
}

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
    // The token of a link is no longer in the address, so its reader could not try again.
    if (shown.hidden && isLink(secret)) input.value = secret;
  } finally {
    if (own === asked) main.removeAttribute('aria-busy');
  }
}

/** @returns {Promise<Shown>} */
async function readAll() {
  const { body: state, nowMs } = await ask('');
  const recorded = await readRecord(nowMs).catch((error) => String(error.message));
  return { state, recorded, nowMs };
}

/** The requests are sent one by one, because the gateway does not read the usage of a key in parallel. @param {number} nowMs */
async function readRecord(nowMs) {
  const from = (/** @type {number} */ ms) => encodeURIComponent(new Date(ms).toISOString());
  const hours = await ask(`/usage?step=hour&from=${from(nowMs - 23 * hourMs)}`);
  const days = await ask(`/usage?step=day&from=${from(nowMs - 29 * dayMs)}`);
  const calls = await ask('/deprecated');
  return { hours: hours.body.rows, days: days.body.rows, deprecated: calls.body.operations };
}

/**
 * Sends a request with the entered key. `nowMs` is the time on the server's clock, because the clock of this device may be wrong.
 *
 * @param {string} path relative to the path of the limits
 * @param {{ method?: string, silence?: string, headers?: Record<string, string> }} [options] `silence`: the error message if no response
 *   arrives
 * @returns {Promise<{ body: any, nowMs: number }>}
 */
async function ask(path, { method = 'GET', silence = noAnswer, headers = {} } = {}) {
  const response = await fetch(limitsPath + path, {
    method,
    headers: { ...headers, Authorization: `Bearer ${secret}`, Accept: 'application/json' },
    cache: 'no-store',
    credentials: 'omit',
    redirect: 'error',
    signal: AbortSignal.timeout(timeoutMs),
  }).catch(() => {
    throw new Error(silence);
  });
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(body.message ?? `The server answered with status ${response.status}.`);
  return { body, nowMs: Date.parse(response.headers.get('date') ?? '') || Date.now() };
}

const noAnswer = 'The server did not answer. Check your connection and try again.';
const noRotation =
  'The server did not answer, so a new secret may have been lost. Press the button again: the lost secret then ends, and you get another one. The present secret is valid for at least another day.';

/** @param {Shown} read */
function show({ state, recorded, nowMs }) {
  const again = element('button', { type: 'button' }, 'Refresh');
  again.addEventListener('click', () => void refresh());
  const away = element('button', { type: 'button' }, state.link ? 'Forget the link' : 'Forget the key');
  away.addEventListener('click', () => {
    forget();
    input.focus();
  });
  shown.replaceChildren(
    element(
      'div',
      { class: 'head' },
      element('h2', {}, state.id),
      element('p', { class: 'muted' }, `plan ${state.plan}, at ${timeOf(nowMs)}`),
      element('p', { class: 'buttons' }, again, away),
    ),
    ...summary(state, nowMs),
    ...(state.secret?.canRotate || issued ? [rotation(state)] : []),
    section(
      'Limits',
      ...state.windows.map((window) => bar(window, nowMs)),
      ...concurrencyOf(state),
      ...grantOf(state),
      ...creditsOf(state),
    ),
    ...(typeof recorded === 'string'
      ? [section('Usage', element('p', { class: 'near' }, recorded))]
      : recordSections(state, recorded, nowMs)),
    ...(state.upcoming?.length ? [section('Announced changes', upcomingList(state.upcoming))] : []),
  );
  shown.hidden = false;
}

/** @param {State} state @param {Recorded} recorded @param {number} nowMs */
function recordSections(state, recorded, nowMs) {
  const { hours, days, deprecated } = recorded;
  return [
    usageSection(state, recorded, nowMs),
    section('Refused requests', refusals(hours, days)),
    ...(deprecated.length > 0
      ? [section('Deprecated operations that this key called', deprecatedList(deprecated))]
      : []),
  ];
}

/**
 * Makes a sentence about a ban or a used-up limit, and a sentence about the expiry of the secret, or about the link that opened the page.
 *
 * @param {State} state
 * @param {number} nowMs
 */
function summary({ ban, windows, links, link, secret: presented = {} }, nowMs) {
  const spent = windows.filter(({ remaining }) => remaining === 0);
  const byReset = spent.toSorted((a, b) => a.resetAt.localeCompare(b.resetAt));
  // A group limits only some operations, so the limit of all operations and the limit of each group have a sentence of their own.
  const last = new Map(byReset.map((window) => [groupIn(window.name), window]));
  const texts = windows.flatMap((window) =>
    last.get(groupIn(window.name)) === window
      ? `The limit of this ${windowText(window.name)} (${count(window.limit)}) is used up. It starts over at ${instant(window.resetAt)}.`
      : [],
  );
  const first = ban
    ? element('p', { class: 'bad' }, `Banned until ${instant(ban.untilAt)}. ${ban.reason}`)
    : texts.length > 0
      ? element('p', { class: 'bad' }, texts.join(' '))
      : element('p', {}, 'Requests of this key are within its limits.');
  if (link !== undefined) {
    const opened = `This page was opened by a link that ${link.by} made. The link ends on ${instant(link.untilAt)}.`;
    return [first, element('p', { class: 'muted' }, opened)];
  }
  const { expiresAt } = presented;
  const isNear = expiresAt !== undefined && Date.parse(expiresAt) - nowMs < 14 * dayMs;
  const ends =
    expiresAt === undefined
      ? 'This secret does not expire.'
      : `This secret expires on ${instant(expiresAt)}.`;
  return [first, element('p', { class: isNear ? 'near' : 'muted' }, ends), ...linksOf(links)];
}

/** @param {State['links']} links */
function linksOf(links = []) {
  return links.map(({ by, untilAt }) =>
    element(
      'p',
      { class: 'muted' },
      `A link that ${by} made also opens this page, without a secret, until ${instant(untilAt)}.`,
    ),
  );
}

/** Makes the button that replaces the presented secret, or shows the new secret. @param {State} state */
function rotation(state) {
  const own = element('div', { class: 'rotation' });
  if (issued !== undefined) {
    own.append(
      element(
        'p',
        { role: 'status' },
        'Your new secret, which is shown only now: ',
        element('code', {}, issued.secret),
        ` The old secret is valid until ${instant(issued.oldEndsAt)}.`,
      ),
    );
    return own;
  }
  const button = /** @type {HTMLButtonElement} */ (element('button', { type: 'button' }, 'Get a new secret'));
  const result = element(
    'p',
    { role: 'status', class: 'muted' },
    'The present secret then ends in 24 hours.',
  );
  button.addEventListener('click', async () => {
    if (button.dataset.asked === undefined) {
      button.dataset.asked = '';
      button.textContent = 'Get a new secret now: the present secret ends in 24 hours';
      return;
    }
    const before = secret;
    button.disabled = true;
    try {
      rotationId ??= randomId();
      const headers = { 'Idempotency-Key': rotationId };
      const { body } = await ask('/rotate', { method: 'POST', silence: noRotation, headers });
      // The page has forgotten the key during the request, so it must not show the new secret to the next person.
      if (secret !== before) return;
      secret = body.secret;
      rotationId = undefined;
      issued = body;
      own.replaceWith(rotation(state));
    } catch (error) {
      button.disabled = false;
      result.textContent = error instanceof Error ? error.message : String(error);
    }
  });
  own.append(button, result);
  return own;
}

/** `crypto.randomUUID` exists only in pages with HTTPS. */
function randomId() {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((octet) => octet.toString(16).padStart(2, '0'))
    .join('');
}

/** @param {Window} window @param {number} nowMs */
function bar({ name, limit, used, remaining, resetAt, operations }, nowMs) {
  const part = Math.min(1, used / limit);
  const fill = element('span', { class: part >= 1 ? 'fill full' : part >= 0.8 ? 'fill almost' : 'fill' });
  fill.style.width = `${100 * part}%`;
  const inS = Math.max(0, Math.ceil((Date.parse(resetAt) - nowMs) / 1_000));
  const when = inS < 120 ? `in ${inS} s` : `at ${instant(resetAt)}`;
  return element(
    'div',
    { class: 'window' },
    element('span', {}, barName(name)),
    element('span', { class: 'bar', 'aria-hidden': 'true' }, fill),
    element('span', {}, `${count(used)} of ${count(limit)} used, ${count(remaining)} left`),
    element(
      'span',
      { class: 'muted' },
      `starts over ${when}${operations ? ` · for ${operations.join(', ')}` : ''}`,
    ),
  );
}

/** @param {State} state */
function concurrencyOf({ concurrent }) {
  if (concurrent === undefined) return [];
  const requests = concurrent === 1 ? 'request' : 'requests';
  return [element('p', {}, `At most ${count(concurrent)} ${requests} may be in progress at the same time.`)];
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

/** Describes the units that an operator has given back. @param {State} state */
function creditsOf({ credits = [] }) {
  return credits.map(({ at, from, to, givenBack: { day, month } }) =>
    element(
      'p',
      {},
      `${instant(at)}: ${units(day)} of the day and ${units(month)} of the month were given back for requests that failed from ${instant(from)} to ${instant(to)}.`,
    ),
  );
}

/** @param {number} number */
function units(number) {
  return `${count(number)} ${number === 1 ? 'unit' : 'units'}`;
}

/** @param {State} state @param {Recorded} recorded @param {number} nowMs */
function usageSection({ windows }, { hours, days }, nowMs) {
  const charts = {
    hours: () =>
      chart({ rows: hours, windows, nowMs, unit: 'hour', lengthMs: hourMs, columns: 24, from: 11, to: 16 }),
    days: () =>
      chart({ rows: days, windows, nowMs, unit: 'day', lengthMs: dayMs, columns: 30, from: 5, to: 10 }),
  };
  const body = element('div', {});
  const choose = (/** @type {'hours' | 'days'} */ which) => {
    chosenChart = which;
    for (const [name, button] of buttons) button.setAttribute('aria-pressed', String(name === which));
    body.replaceChildren(...charts[which]());
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

/**
 * Returns the largest number of units that all limits together admit within a period of the given length. A group limits only some
 * operations, so it does not count.
 *
 * @param {Window[]} windows @param {number} lengthMs
 */
function mostWithin(windows, lengthMs) {
  const ofAll = windows.filter(({ operations }) => operations === undefined);
  const each = ofAll.map(({ name, limit }) => limit * Math.max(1, lengthMs / (windowsMs.get(name) ?? dayMs)));
  return each.length === 0 ? undefined : Math.min(...each);
}

/**
 * Makes a chart with a column for each hour or day and a line at the limit, and a table with the same figures. The labels are the
 * characters `from` to `to` of the timestamps.
 *
 * @param {{ rows: Row[], windows: Window[], nowMs: number, unit: string, lengthMs: number, columns: number, from: number, to: number }} drawn
 */
function chart({ rows, windows, nowMs, unit, lengthMs, columns: number, from, to }) {
  const end = Math.floor(nowMs / lengthMs) * lengthMs;
  const byPlace = new Map(rows.map((row) => [Date.parse(row.at), row]));
  const columns = Array.from({ length: number }, (_, i) => {
    const atMs = end - (number - 1 - i) * lengthMs;
    return { label: new Date(atMs).toISOString().slice(from, to), row: byPlace.get(atMs) };
  });
  const limit = mostWithin(windows, lengthMs);
  const highest = Math.max(1, ...columns.map(({ row }) => chargedOf(row) + refusedOf(row)));
  // A limit far above the columns is not drawn, because the columns would be too small to see.
  const drawnLimit = limit !== undefined && limit <= 4 * highest ? limit : undefined;
  const top = Math.max(highest, drawnLimit ?? 0);
  const plot = element('div', { class: 'plot', 'aria-hidden': 'true' });
  for (const { label, row } of columns) {
    const admitted = element('span', { class: 'admitted' });
    const refused = element('span', { class: 'refused' });
    admitted.style.height = `${(100 * chargedOf(row)) / top}%`;
    refused.style.height = `${(100 * refusedOf(row)) / top}%`;
    const title = `${label}: ${count(row?.admitted ?? 0)} admitted, ${count(refusedOf(row))} refused`;
    plot.append(element('span', { class: 'column', title }, refused, admitted));
  }
  if (drawnLimit !== undefined) {
    const line = element('span', { class: 'limit' }, element('span', {}, `limit ${count(drawnLimit)}`));
    line.style.bottom = `${(100 * drawnLimit) / top}%`;
    plot.append(line);
  }
  const isCosted = rows.some((row) => row.units !== undefined);
  const costs = isCosted ? ` The admitted requests cost ${count(sumOf(rows, chargedOf))} units.` : '';
  const limitText =
    limit === undefined
      ? ''
      : ` The limits admit at most ${count(limit)} ${isCosted ? 'units ' : ''}in one ${unit}.`;
  return [
    element(
      'p',
      {},
      element('span', { class: 'swatch admitted' }),
      `${count(sumOf(rows, ({ admitted }) => admitted))} requests were admitted and `,
      element('span', { class: 'swatch refused' }),
      `${count(sumOf(rows, refusedOf))} refused.${costs}${limitText}`,
    ),
    element('p', { class: 'axis muted', 'aria-hidden': 'true' }, `up to ${count(highest)} in one ${unit}`),
    plot,
    element(
      'p',
      { class: 'axis muted', 'aria-hidden': 'true' },
      element('span', {}, columns[0]?.label ?? ''),
      element('span', {}, `${columns.at(-1)?.label} UTC`),
    ),
    element(
      'details',
      {},
      element('summary', {}, 'The figures as a table'),
      table(
        [`${unit} (UTC)`, 'admitted', 'refused', ...(isCosted ? ['units'] : [])],
        columns.flatMap(({ label, row }) =>
          row === undefined
            ? []
            : [
                [
                  label,
                  count(row.admitted),
                  count(refusedOf(row)),
                  ...(isCosted ? [count(chargedOf(row))] : []),
                ],
              ],
        ),
      ),
    ),
  ];
}

/** @param {Row | undefined} row */
function refusedOf(row) {
  return row === undefined ? 0 : row.offered - row.admitted;
}

/** A request is one unit unless its operation has a cost. @param {Row | undefined} row */
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
      // The totals of past days do not count requests with an invalid secret.
      reason === invalidSecret ? 'not recorded' : count(month.get(reason) ?? 0),
    ]),
  );
}

const invalidSecret = 'secret was not valid';

/** @param {Row[]} rows */
function reasonsOf(rows) {
  /** @type {Map<string, number>} */
  const reasons = new Map();
  const add = (/** @type {string} */ reason, /** @type {number | undefined} */ requests) => {
    if (requests) reasons.set(reason, (reasons.get(reason) ?? 0) + requests);
  };
  for (const { refused, banned, undecided, unauthorized } of rows) {
    for (const [limit, requests] of Object.entries(refused)) {
      add(limit === 'concurrent' ? 'limit of concurrent requests' : `limit of ${per(limit)}`, requests);
    }
    add('banned', banned);
    add('limits could not be checked', undecided);
    add(invalidSecret, unauthorized);
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
    ...changes.map(({ from, plan, limits }) => {
      const onPlan = plan === undefined ? '' : `plan ${plan}, `;
      return element('li', {}, `From ${instant(from)}: ${onPlan}${limitsText(limits)}`);
    }),
  );
}

/** Formats limits, for example "60 a minute, 1,000 a day". @param {Limits} limits */
function limitsText({ groups = {}, ...limits }) {
  const texts = (/** @type {object} */ fields, /** @type {string} */ prefix) =>
    Object.entries(fields).flatMap(([name, limit]) =>
      name === 'operations' ? [] : `${count(limit)} ${per(prefix + name.replace(/^per/, '').toLowerCase())}`,
    );
  const ofGroups = Object.entries(groups).flatMap(([name, fields]) => texts(fields, `${name}-`));
  return [...texts(limits, ''), ...ofGroups].join(', ');
}

/** Returns "reports" for the name `reports-minute`; undefined for the name `minute`. @param {string} name */
function groupIn(name) {
  const at = name.lastIndexOf('-');
  return at === -1 ? undefined : name.slice(0, at);
}

/** Returns "this minute", or "reports: this minute" for the name `reports-minute`. @param {string} name */
function barName(name) {
  const group = groupIn(name);
  return group === undefined ? `this ${name}` : `${group}: this ${name.slice(group.length + 1)}`;
}

/** Returns "minute", or "minute for the group reports" for the name `reports-minute`. @param {string} name */
function windowText(name) {
  const group = groupIn(name);
  return group === undefined ? name : `${name.slice(group.length + 1)} for the group ${group}`;
}

/** Returns the window with its article: "a minute", "an hour for the group reports". @param {string} name */
function per(name) {
  const text = windowText(name);
  return `${text.startsWith('hour') ? 'an' : 'a'} ${text}`;
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

/** Formats the time of day of a timestamp, for example "15:00:20 UTC". @param {number} epochMs */
function timeOf(epochMs) {
  return `${new Date(epochMs).toISOString().slice(11, 19)} UTC`;
}

/** Formats a timestamp, for example "2026-11-24 15:00 UTC". @param {string} iso */
function instant(iso) {
  return `${new Date(iso).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

// At the end, because the functions above need all constants of this module.
openByLink();
