import { counted, figure } from '../../../../shared/words/figures.js';
import { trialKeys } from '../../../words/trial-keys.js';
import { nowMs, usePolled } from '../api.js';
import { columnsOf, minute, sayAt } from '../list.js';
import { cards, html, instead, keyLink, Section } from '../parts.js';

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
    ${firstAt !== undefined && html`<p class="muted">The trial decided its first request of this period at ${minute(Date.parse(firstAt), sayAt(nowMs()))}.</p>`}
    ${
      isOpen &&
      keys.length > 0 &&
      cards(keys, {
        idOf: ({ id }) => id,
        columns: columnsOf(trialKeys, { now: nowMs(), cells: { id: { kind: 'id', cell: keyLink } } }),
      })
    }
    ${isOpen && more > 0 && html`<p class="more">and ${counted(more, 'key')} more</p>`}
  <//>`;
}
