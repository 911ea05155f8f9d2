import { usePolled } from '../api.js';
import { count, counted, percent } from '../formats.js';
import { html, Instead, Section } from '../parts.js';

/** How the keys of a plan are spread under its limits. */
export function Plans({ query }) {
  const polled = usePolled('/plans', 10_000);
  const plans = polled.body?.plans ?? [];
  const name = query.get('plan') ?? plans[0]?.name;
  return html`<div class="plans">
    <${Section} title="Plans" heading="h1" polled=${polled}>
      ${
        plans.length === 0
          ? html`<${Instead} polled=${polled}>There are no plans.<//>`
          : html`<table class="cards">
              <thead>
                <tr>
                  <th scope="col">Plan</th>
                  <th scope="col">Limits</th>
                  <th scope="col">May call</th>
                  <th scope="col" class="number">Keys</th>
                  <th scope="col" class="number">Disabled</th>
                </tr>
              </thead>
              <tbody>
                ${plans.map((plan) => html`<${PlanRow} key=${plan.name} ...${plan} isOpen=${plan.name === name} />`)}
              </tbody>
            </table>`
      }
    <//>
    ${name !== undefined && html`<${Distribution} key=${name} name=${name} />`}
  </div>`;
}

function PlanRow({ name, windows, isCustom, operations, keys, disabledKeys, isOpen }) {
  const limits = isCustom
    ? 'each key has its own'
    : windows.map(({ name, limit }) => `${count(limit)} a ${name}`).join(', ');
  return html`<tr>
    <td class="id">
      <a href=${`/plans?plan=${encodeURIComponent(name)}`} aria-current=${isOpen ? 'true' : undefined}>${name}</a>
    </td>
    <td data-label="Limits">${limits}</td>
    <td data-label="May call">${operations === undefined ? 'everything' : operations.join(', ')}</td>
    <td class="number" data-label="Keys">${count(keys)}</td>
    <td class="number" data-label="Disabled">${count(disabledKeys)}</td>
  </tr>`;
}

function Distribution({ name }) {
  const polled = usePolled(`/plans/${encodeURIComponent(name)}/distribution`, 30_000);
  const { body } = polled;
  const title = `${name}: the last 24 hours`;
  if (body === undefined || body.activeKeys === 0) {
    const none = body && `None of ${counted(body.keys, 'key')} has sent a request in the last 24 hours.`;
    return html`<${Section} title=${title} polled=${polled}><${Instead} polled=${polled}>${none}<//><//>`;
  }
  const { keys, activeKeys, examinedKeys, refusedKeys, minute, day } = body;
  const part =
    refusedKeys === 0
      ? 'none was refused anything'
      : `${counted(refusedKeys, 'was', 'were')} refused something (${percent(refusedKeys / examinedKeys)})`;
  const examined =
    examinedKeys < activeKeys ? ` Counted are the ${count(examinedKeys)} that were active last.` : '';
  return html`<${Section} title=${title} polled=${polled}>
    <p class="sentence">
      ${`${count(activeKeys)} of ${counted(keys, 'key')} sent requests: ${part}.${examined}`}
    </p>
    <div class="two">
      <${Spread} title="Busiest minute of each key" unit="minute" ...${minute} />
      <${Spread} title="All of the 24 hours of each key" unit="day" ...${day} />
    </div>
  <//>`;
}

/** How many keys are in each bucket, and where the limit is among them. */
function Spread({ title, unit, limit, buckets }) {
  const most = Math.max(...buckets.map(({ keys }) => keys), 1);
  const at = limit === undefined ? -1 : buckets.findIndex(({ from }) => from > limit);
  return html`<figure class="spread">
    <h3>${title}</h3>
    <table>
      <thead>
        <tr>
          <th scope="col" class="number">requests</th>
          <th scope="col"><span class="sr">share of the largest bucket</span></th>
          <th scope="col" class="number">keys</th>
        </tr>
      </thead>
      <tbody>
        ${buckets.flatMap(({ from, to, keys }, index) => [
          index === at && html`<${LimitRow} key="limit" limit=${limit} unit=${unit} />`,
          html`<tr key=${from}>
            <td class="number range">${rangeOf(from, to)}</td>
            <td><span class=${`bar ${limit !== undefined && from > limit ? 'bad' : ''}`}><span style=${{ width: `${(100 * keys) / most}%` }}></span></span></td>
            <td class="number">${count(keys)}</td>
          </tr>`,
        ])}
        ${at === -1 && limit !== undefined && html`<${LimitRow} limit=${limit} unit=${unit} />`}
      </tbody>
    </table>
  </figure>`;
}

function LimitRow({ limit, unit }) {
  return html`<tr class="limit">
    <td colspan="3">limit: ${count(limit)} a ${unit}</td>
  </tr>`;
}

/** @param {number} from @param {number} to */
function rangeOf(from, to) {
  return to - from === 1 ? count(from) : `${count(from)}–${count(to - 1)}`;
}
