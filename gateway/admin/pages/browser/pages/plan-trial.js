import { counted, figure, noFigure, percent } from '../../../../shared/words/figures.js';
import { nowMs, usePolled } from '../api.js';
import { clock, fullInstant } from '../formats.js';
import { cards, html, instead, keyLink, Section } from '../parts.js';

/** @import { BodyOf } from '../../../wires/api-types.ts' */

/** @typedef {BodyOf<'/plans/{name}/trial'>} Trial */
/** @typedef {Trial['keys'][number]} RefusedKey */

/**
 * Shows what the trial of a plan would have refused, in words, and the keys with these requests.
 *
 * @param {{ plan: string, isOpen: boolean }} props `isOpen`: the keys are listed
 */
export function PlanTrial({ plan, isOpen }) {
  const polled = usePolled('/plans/{name}/trial', 30_000, { params: { name: plan } });
  const { body } = polled;
  const title = `${plan}: the trial in the last 24 hours`;
  if (body === undefined) return html`<${Section} title=${title} polled=${polled}>${instead(polled, '')}<//>`;
  const { sentence, firstAt, refused, refusedNow, keys, more = 0, activeKeys, examinedKeys } = body;
  const examined =
    examinedKeys < activeKeys
      ? ` Only the ${figure(examinedKeys)} most recently active of ${counted(activeKeys, 'key')} are counted.`
      : '';
  return html`<${Section} title=${title} name="trial" polled=${polled}>
    <p class=${`sentence ${refused > refusedNow ? 'near' : ''}`}>
      ${`${sentence}${examined}`}
      ${!isOpen && keys.length > 0 && html` <a href=${`/plans?plan=${encodeURIComponent(plan)}`}>Show the keys</a>`}
    </p>
    ${firstAt !== undefined && html`<p class="muted">The trial decided its first request of this period at ${minute(firstAt)}.</p>`}
    ${isOpen && keys.length > 0 && cards(keys, { idOf: ({ id }) => id, columns })}
    ${isOpen && more > 0 && html`<p class="more">and ${counted(more, 'key')} more</p>`}
  <//>`;
}

/** @type {import('../parts.js').Column<RefusedKey>[]} */
const columns = [
  { title: 'Key', kind: 'id', cell: ({ id, name }) => keyLink({ id, name }) },
  { title: 'Requests', kind: 'number', cell: ({ requests }) => figure(requests) },
  { title: 'Refused now', kind: 'number', cell: ({ refusedNow }) => figure(refusedNow) },
  {
    title: 'By the trial',
    kind: 'number',
    cell: ({ refused }) => figure(refused),
    isBad: ({ refused, refusedNow }) => refused > refusedNow,
  },
  { title: 'Share', kind: 'number', cell: ({ refused, requests }) => percent(refused / requests) },
  { title: 'Refused by', cell: ({ refusedBy }) => refusers(refusedBy) },
  { title: 'First', cell: ({ firstRefusedAt }) => minute(firstRefusedAt) },
  { title: 'Last', cell: ({ lastRefusedAt }) => minute(lastRefusedAt) },
];

/** Lists what refused requests, for example "minute 130, ban 2". @param {RefusedKey['refusedBy']} refusedBy */
function refusers(refusedBy) {
  return Object.entries(refusedBy)
    .sort(([, a], [, b]) => b - a)
    .map(([name, refused]) => `${name === 'banned' ? 'ban' : name} ${figure(refused)}`)
    .join(', ');
}

/** @param {string | undefined} at */
function minute(at) {
  if (at === undefined) return noFigure;
  const atMs = Date.parse(at);
  return html`<time dateTime=${at} title=${fullInstant(atMs)}>${clock(atMs, nowMs()).slice(0, -3)}</time>`;
}
