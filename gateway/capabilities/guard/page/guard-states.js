import { nowMs } from '../../../admin/pages/browser/api.js';
import { CopyButton, html, Instant } from '../../../admin/pages/browser/parts.js';
import { counted, figure, percent } from '../../../shared/words/figures.js';
import { limitsInWords } from '../../../shared/words/limit-names.js';

/** @import { Plan, PlanNotes } from '../../interfaces/pages.ts' */

/** More sentences about guarded plans are folded, so that the list of plans begins near the top of the page. */
const unfoldedMax = 3;

/**
 * States which plans a guard has reverted, and which plans it guards now. A reverted plan comes first, because the
 * operator must decide about it.
 *
 * @type {PlanNotes}
 */
export function guardStates(plans) {
  const reverted = plans.filter((plan) => plan.reverted !== undefined);
  const guarded = plans.filter(
    ({ guard, reverted }) => guard && reverted === undefined && Date.parse(guard.untilAt) > nowMs(),
  );
  if (reverted.length + guarded.length === 0) return '';
  return html`<ul class="guard-states">
    ${reverted.map((plan) => html`<li key=${plan.name}>${revertedText(plan)}</li>`)}
    ${guarded.length <= unfoldedMax ? guardedItems(guarded) : html`<li>${folded(guarded)}</li>`}
  </ul>`;
}

/** @param {readonly Plan[]} plans */
function guardedItems(plans) {
  return plans.map((plan) => html`<li key=${plan.name} class="muted">${guardedText(plan)}</li>`);
}

/** @param {readonly Plan[]} plans */
function folded(plans) {
  return html`<details>
    <summary>${counted(plans.length, 'plan')} have a guard</summary>
    <ul>${guardedItems(plans)}</ul>
  </details>`;
}

/** @param {Plan} plan a reverted plan */
function revertedText({ name, guard, reverted }) {
  if (reverted === undefined) return '';
  const { sinceAt, requests, refused, edit } = reverted;
  const command = `tollgate plans retry ${name}`;
  return html`<p class="sentence bad">
      <b>${name}</b> is back at ${limitsInWords(guard?.before ?? {})}: its guard reverted
      it${' '}<${Instant} atMs=${Date.parse(sinceAt)} />.
    </p>
    <p>
      The edit to ${limitsInWords(edit)} refused ${figure(refused)} of ${figure(requests)} requests
      (${percent(refused / requests)}) in ten minutes. Edit the plan, or let it try the edit again:
    </p>
    <p><code>${command}</code>${' '}<${CopyButton} text=${command} label="Copy the command" /></p>`;
}

/** @param {Plan} plan a plan with a guard that has not reverted it */
function guardedText({ name, guard, watched }) {
  if (guard === undefined) return '';
  const { before, refusedAtMost, untilAt } = guard;
  const day = untilAt.slice(0, 16).replace('T00:00', '').replace('T', ' ');
  if (watched === undefined)
    return `${name} has a guard until ${day} UTC, but the guard watches nothing now: no limit of the plan is smaller than in before.`;
  const now =
    watched.requests === 0
      ? ''
      : ` Now they refuse ${percent(watched.refused / watched.requests)} of ${counted(watched.requests, 'request')}.`;
  return `${name} is guarded until ${day} UTC: it returns to ${limitsInWords(before)} if its smaller limits refuse ${refusedAtMost} of its requests in ten minutes.${now}`;
}
