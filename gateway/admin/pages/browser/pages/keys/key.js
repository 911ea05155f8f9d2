import { useEffect, useState } from 'preact/hooks';
import { keyActions, keyNotes } from '../../../../../capabilities/lists/pages.js';
import { exemptionWords } from '../../../../../shared/words/exemptions.js';
import {
  beginning,
  counted,
  dayMs,
  ending,
  figure,
  minuteMs,
  noFigure,
  relative,
} from '../../../../../shared/words/figures.js';
import { limitsInWords } from '../../../../../shared/words/limit-names.js';
import { callsOf, removalIn } from '../../../../words/keys.js';
import { nowMs, queryOf, usePolled } from '../../api.js';
import { clock, fullInstant } from '../../formats.js';
import { KeyAction, KeyActions, result } from '../../key-actions.js';
import { keyStateWord } from '../../list.js';
import {
  Age,
  CopyButton,
  cards,
  errorColumns,
  Fresh,
  html,
  Instant,
  instead,
  noteOf,
  Section,
  useNow,
  windowBar,
} from '../../parts.js';
import { keyPath } from '../../router.js';
import { minuteQuery } from './key-minute.js';
import { UsageChart } from './key-usage.js';

/** @import { BodyOf, RowOf } from '../../../../wires/api-types.ts' */
/** @import { Polled } from '../../api.js' */
/** @import { PageProps } from '../../live.js' */

/** @typedef {BodyOf<'/keys/{id}'>} KeyDetail */
/** @typedef {RowOf<'/keys/{id}/usage'>} UsageRow */

/**
 * The page of a key. The page explains by a sentence, figures and charts why requests of the key are admitted or
 * refused.
 *
 * @param {PageProps} props
 */
export function Key({ params: { id = '' }, query, live }) {
  const now = useNow();
  const [done, setDone] = useState(
    /** @type {import('../../key-actions.js').Shown | undefined} */ (undefined),
  );
  const [isDeleted, setDeleted] = useState(false);
  const [isMissing, setMissing] = useState(false);
  // A deleted key is not requested again, because the browser's console logs each 404 as an error.
  // For a key that does not exist, the gateway reads its whole record of changes.
  const everyMs = isMissing ? 30_000 : 3_000;
  const polled = usePolled(isDeleted ? undefined : '/keys/{id}', everyMs, { params: { id } });
  const known = usePolled('/operations', minuteMs).body?.operations ?? [];
  const { body: key, error } = polled;
  useEffect(() => setMissing(error?.status === 404), [error?.status]);
  // The page still has the last response about a deleted key in memory, but does not show it.
  if (isDeleted || error?.status === 404) {
    return html`${result(done)}
      <p class="empty" role=${key ? undefined : 'alert'}>There is no key <b>${id}</b>. ${removalIn(error?.message ?? '')} <a href="/keys">Show all keys</a>.</p>`;
  }
  // The page waits for the response of `/state`, which contains the rights of the token. Without this wait, the buttons
  // would appear later and move the rest of the page.
  const isPending = !live.state && !live.polled.error;
  if (!key || isPending) {
    return html`<p class="empty" role=${error ? 'alert' : 'status'}>${noteOf(key ? live.polled : polled, '')}</p>`;
  }
  const onDone = (/** @type {import('../../action-dialog.js').Done} */ { text, isEnd }) => {
    setDone({ text, atMs: nowMs() });
    setDeleted(isEnd);
  };
  const buttonOf = (/** @type {import('../../actions.js').Action} */ action) =>
    html`<${KeyAction} of=${key} action=${action} live=${live} onDone=${onDone} />`;
  return html`<div class="key">
    <header class="heading">
      <h1>${id}</h1>
      <p>
        ${key.name !== undefined && html`<bdi>${key.name}</bdi> · `}${key.plan} · ${keyStateWord(key.state)} ·
        <span class="muted"> ${placeOf(key)}</span> · <a href=${`/changes${queryOf({ key: id })}`}>its changes</a>
        ${' '}<${Age} polled=${polled} />
      </p>
      ${otherMembers(key)}
      <${KeyActions} of=${key} further=${keyActions} live=${live} done=${done} onDone=${onDone} />
    </header>
    <${Fresh} polled=${polled}>
      <div class="why">
        <p>${key.why.sentence}</p>
        <${CopyButton} text=${key.why.sentence} />
      </div>
      <div class="windows">
        ${key.windows.map((window) => windowBar(window, now))}
        <p class="muted ban">${banAndGrant(key)}</p>
        ${keyNotes.map(({ notesOn }) => notesOn(key, buttonOf))}
        ${key.trial && html`<p class=${`trial ${key.trial.refused > key.trial.refusedNow ? 'near' : 'muted'}`}>${key.trial.sentence}</p>`}
      </div>
    <//>
    <${UsageChart} id=${id} ban=${key.ban} query=${query} />
    <div class="two">
      ${operations(key, known, polled)}
      ${secrets(key, polled)}
    </div>
    ${key.recentRefusals && refusals(id, key.recentRefusals, polled)}
  </div>`;
}

const shownApart = [
  ...['id', 'plan', 'name', 'operations', 'secrets', 'state', 'source', 'file', 'line', 'revision'],
  ...['definition', 'missing', 'changes', 'upcoming', 'newestSecretAt'],
  ...['windows', 'ban', 'grant', 'strikes', 'why', 'lastSeenMs', 'offered24h', 'refused24h', 'units24h'],
  ...['operations24h', 'recentRefusals', 'trial', ...keyNotes.flatMap(({ members }) => members)],
];

/** Shows the members of the key's definition that have no other place on the page. @param {KeyDetail} key */
function otherMembers(key) {
  const others = Object.entries(key).filter(([name]) => !shownApart.includes(name));
  return others.map(
    ([name, member]) =>
      html`<p key=${name} class="muted">${name}: <bdi>${typeof member === 'string' ? member : JSON.stringify(member)}</bdi></p>`,
  );
}

/** Names the place where an operator edits the key: the directory, or a file and line. @param {KeyDetail} key */
function placeOf({ source, file, line }) {
  if (source === 'directory') return 'in the key directory';
  return file === undefined ? 'in the configuration' : `in ${file}:${line}`;
}

/** Describes the limits and exemptions of a grant. @param {NonNullable<KeyDetail['grant']>} grant */
function grantedText(grant) {
  return [limitsInWords(grant.limits ?? {}), ...exemptionWords(grant)].filter(Boolean).join(', ');
}

/** @param {KeyDetail} key */
function banAndGrant({ missing, ban, strikes, grant }) {
  // The sentence above states the same beginning and end.
  const time = (/** @type {string} */ text, /** @type {number} */ atMs) =>
    html` ${text}, <${Instant} atMs=${atMs} />`;
  const first = ban
    ? html`<span class="bad">Banned</span>${
        ban.byHand
          ? html` by an operator${time(`until ${ending(ban.untilMs)}`, ban.untilMs)}${ban.reason && html`: <bdi>${ban.reason}</bdi>`}`
          : html`, level ${figure(ban.level)}, <${Instant} atMs=${ban.untilMs} prefix="ends " />`
      }`
    : strikes > 0
      ? `${counted(strikes, 'refusal counts', 'refusals count')} towards the next ban`
      : !missing && 'no refusal counts towards a ban';
  if (!grant) return first;
  const begin = grant.fromMs && time(`from ${beginning(grant.fromMs)}`, grant.fromMs);
  return html`${first} · granted ${grantedText(grant)}${begin}${begin && ','}${time(`until ${ending(grant.untilMs)}`, grant.untilMs)}`;
}

/** @param {KeyDetail} key @param {BodyOf<'/operations'>['operations']} known @param {Polled} polled */
function operations(key, known, polled) {
  const deprecated = new Set(known.filter((one) => one.deprecation).map(({ operationId }) => operationId));
  const none = key.operations24h
    ? 'No calls in the last 24 hours.'
    : 'Usage is not recorded, because usage.keepDays is 0.';
  return listSection('Operations, 24 h', polled, callsOf(key), none, {
    idOf: ({ operationId }) => operationId,
    columns: [
      {
        title: 'Operation',
        kind: 'id',
        cell: ({ operationId }) => html`${operationId === '' ? html`<i>no operation</i>` : operationId}
          ${deprecated.has(operationId) && html` <span class="near">deprecated</span>`}`,
      },
      { title: 'Requests', kind: 'number', cell: ({ requests }) => figure(requests) },
      ...errorColumns,
    ],
  });
}

/** @param {KeyDetail} key @param {Polled} polled */
function secrets({ secrets, source, missing }, polled) {
  const instant = (/** @type {string | undefined} */ at) => html`<${Instant} atMs=${at && Date.parse(at)} />`;
  const note =
    source === 'file' &&
    html`<p class="muted">This key is defined in a file. Change its secrets or revoke it there, by hand or with <code>tollgate keys</code>.</p>`;
  const leaks = secrets.map(({ digestStart, leak }) => leak && leaked(digestStart, leak));
  return listSection(
    'Secrets',
    polled,
    secrets,
    'This key has no secret, so no client can use it.',
    {
      idOf: ({ digestStart }) => digestStart,
      columns: [
        {
          title: 'SHA-256',
          kind: 'id',
          hint: 'The first digits of the SHA-256 digest of the secret',
          cell: ({ digestStart, leak }) =>
            html`<code>${digestStart}…</code>${leak && html` <span class="bad">${leak.ancestor ? 'issued from a leaked secret' : 'leaked'}</span>`}`,
        },
        {
          title: 'Created',
          kind: 'number',
          cell: ({ createdAt }) => (createdAt ? instant(createdAt) : noFigure),
        },
        {
          title: 'Last used',
          kind: 'number',
          cell: ({ lastUsedAt }) => (missing && !lastUsedAt ? noFigure : instant(lastUsedAt)),
        },
        {
          title: 'Refused',
          kind: 'number',
          hint: 'Requests that got 401, or 429 after too many from their address, because the secret had expired or the key was disabled, and the time of the last request',
          cell: ({ unauthorized }) =>
            unauthorized ? html`${figure(unauthorized.requests)}, ${instant(unauthorized.lastAt)}` : noFigure,
        },
        {
          title: 'Ends',
          kind: 'number',
          isBad: ({ isExpired }) => isExpired,
          cell: ({ expiresAt, isExpired }) => {
            if (expiresAt === undefined) return noFigure;
            const endsMs = Date.parse(expiresAt);
            // A time has no line break, so the word before the time is outside of it.
            return html`${isExpired ? 'ended ' : ''}<time title=${fullInstant(endsMs)} dateTime=${expiresAt}>${relative(endsMs, nowMs())}</time>`;
          },
        },
      ],
    },
    [leaks, note],
  );
}

/**
 * Shows where a leaked secret was found. The texts come from the reporter, so the address is no link.
 *
 * @param {string} digestStart
 * @param {NonNullable<KeyDetail['secrets'][number]['leak']>} leak
 */
function leaked(digestStart, { at, by, ended, source, url, ancestor }) {
  const place = [source && `found in ${source}`, url && `at ${url}`].filter(Boolean).join(' ');
  return html`<p class="leak" key=${digestStart}>
    <code>${digestStart}…</code> <span class="bad">${ended ? (ancestor ? 'ended' : 'leaked and ended') : 'leaked and is still valid'}</span>,
    ${ancestor && html`because the holder of the key issued it from <code>${ancestor}…</code>, which leaked,`} reported
    by <bdi>${by}</bdi> <${Instant} atMs=${Date.parse(at)} />${place && html`, <bdi>${place}</bdi>`}
  </p>`;
}

/** @param {string} id @param {readonly UsageRow[]} rows @param {Polled} polled */
function refusals(id, rows, polled) {
  /** @type {import('../../parts.js').Column<UsageRow>[]} */
  const units = rows.some(({ units }) => units !== undefined)
    ? [{ title: 'Units', kind: 'number', cell: ({ admitted, units = admitted }) => figure(units) }]
    : [];
  return listSection(
    'Latest minutes with refusals',
    polled,
    rows,
    'No request was refused in the last 24 hours.',
    {
      idOf: ({ at }) => at,
      columns: [
        {
          title: 'Minute',
          kind: 'id',
          cell: ({ at }) =>
            html`<a href=${keyPath(id) + queryOf(minuteQuery(Date.parse(at), dayMs))}><time title=${fullInstant(Date.parse(at))} dateTime=${at}>${clock(Date.parse(at), nowMs()).slice(0, -3)}</time></a>`,
        },
        {
          title: 'Requests',
          kind: 'number',
          cell: ({ offered, unauthorized = 0 }) => figure(offered + unauthorized),
        },
        { title: 'Admitted', kind: 'number', cell: ({ admitted }) => figure(admitted) },
        ...units,
        {
          title: 'Refused',
          kind: 'number',
          cell: ({ offered, unauthorized = 0, admitted }) => figure(offered + unauthorized - admitted),
        },
        { title: 'Refused by', cell: refusedBy },
      ],
    },
  );
}

/** @param {UsageRow} row */
function refusedBy({ refused, banned, undecided = 0, unauthorized = 0 }) {
  const parts = Object.entries(refused).map(
    ([name, number]) =>
      `${name === 'concurrent' ? 'concurrent requests' : `${name} limit`} ${figure(number)}`,
  );
  if (banned > 0) parts.push(`ban ${figure(banned)}`);
  if (undecided > 0) parts.push(`Redis away ${figure(undecided)}`);
  if (unauthorized > 0) parts.push(`invalid secret ${figure(unauthorized)}`);
  return parts.join(', ');
}

/**
 * A section with a table, or a text if there are no rows.
 *
 * @template Item
 * @param {string} title @param {Polled} polled @param {readonly Item[]} items @param {string} empty
 * @param {Parameters<typeof cards<Item>>[1]} table
 * @param {import('preact').ComponentChildren} [note] shown below the table
 */
function listSection(title, polled, items, empty, table, note) {
  return html`<${Section} title=${title} polled=${polled}>
    ${items.length === 0 ? instead(polled, empty) : cards(items, table)} ${note}
  <//>`;
}
