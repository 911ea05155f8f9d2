import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { change, nowMs, toApiError } from '../api.js';
import { alongTime, Chart } from '../charts.js';
import { clock, count, counted, fullInstant, per, percent } from '../formats.js';
import { html, Section } from '../parts.js';
import { changeQuery, keyPath } from '../router.js';

const minuteMs = 60_000;
const dayMs = 86_400_000;
const keysListed = 50;
const differencesShown = 5;
const againMs = 4_000;

/** How many days are replayed, by what the address says. @type {Record<string, number>} */
export const replayedDays = { 1: 1, 7: 7 };

/**
 * @typedef {object} WhatIf
 * @property {any} found what the simulator said last; undefined before that
 * @property {string | undefined} error
 * @property {boolean} isAsking whether it is about to say something else
 * @property {number} fromMs
 * @property {number} toMs
 */

/**
 * Asks the simulator for these limits of a plan, and again for whatever they are when it has answered. Its period ends with the
 * last whole minute before the page was opened: so the gateway reads the record once.
 *
 * @param {{ plan: string, limits: Record<string, number>, days: number, key: string | undefined }} asked limits by window; those that are tried alone
 * @returns {WhatIf}
 */
export function useWhatIf({ plan, limits, days, key }) {
  const toMs = useMemo(() => Math.floor(nowMs() / minuteMs) * minuteMs - 1, []);
  const fromMs = toMs + 1 - days * dayMs;
  const fields = Object.entries(limits).map(([window, max]) => [fieldOf(window), max]);
  const wanted = JSON.stringify({
    from: new Date(fromMs).toISOString(),
    to: new Date(toMs).toISOString(),
    plan,
    ...(fields.length > 0 && { plans: { [plan]: Object.fromEntries(fields) } }),
    ...(key !== undefined && { minutesOf: key }),
    listed: keysListed,
  });
  const [answer, setAnswer] = useState(/** @type {{ to?: string, found?: any, error?: string }} */ ({}));
  const latest = useRef(wanted);
  latest.current = wanted;
  /** Where the first part of the work ended, by the beginning of the period: later ones are about the same keys. */
  const until = useRef(/** @type {Record<string, string | undefined>} */ ({}));
  const isUnderWay = useRef(false);
  const again = useRef(/** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined));
  const isLeft = useRef(false);

  useEffect(ask, [wanted]);
  useEffect(
    () => () => {
      isLeft.current = true;
      clearTimeout(again.current);
    },
    [],
  );

  function ask() {
    if (isUnderWay.current) return;
    isUnderWay.current = true;
    void askUntilLatest();
  }

  async function askUntilLatest() {
    let asked;
    while (asked !== latest.current) {
      asked = latest.current;
      const order = JSON.parse(asked);
      const end = until.current[order.from];
      try {
        const found = await change('POST', '/simulate', { ...order, ...(end && { until: end }) });
        if (found.next !== undefined) until.current[order.from] ??= found.next;
        setAnswer({ to: asked, found });
      } catch (problem) {
        const { message, status, isResponse } = toApiError(problem);
        setAnswer(({ found }) => ({ to: asked, found, error: message }));
        const isRefused = isResponse && status < 500;
        if (!isRefused && !isLeft.current) againLater();
      }
    }
    isUnderWay.current = false;
  }

  /** While the gateway or Redis is away, the page retries, so that no operator has to reload it. */
  function againLater() {
    clearTimeout(again.current);
    again.current = setTimeout(() => {
      if (document.visibilityState === 'hidden') againLater();
      else ask();
    }, againMs);
  }

  return { found: answer.found, error: answer.error, isAsking: answer.to !== wanted, fromMs, toMs };
}

/** What the limits that are tried would have done, in words and by key. */
export function WhatIfSection({ plan, windows, tried, days, openKey, whatIf }) {
  const { found, error, isAsking } = whatIf;
  const isTried = Object.keys(tried).length > 0;
  const tools = html`<span class="choice" role="group" aria-label="Period">
      ${Object.keys(replayedDays).map(
        (name) => html`<button
          type="button"
          key=${name}
          aria-pressed=${replayedDays[name] === days}
          onClick=${() => changeQuery({ days: name === '1' ? undefined : name }, { replace: true })}
        >
          ${name === '1' ? '24 h' : `${name} days`}
        </button>`,
      )}
    </span>
    ${isTried && html`<button type="button" onClick=${() => changeQuery(noLimits(windows), { replace: true })}>As it is</button>`}`;
  return html`<${Section} title="What if" name="what-if" tools=${tools}>
    <div class="tried">
      ${windows.map(({ name, limit }) => html`<${LimitField} key=${name} window=${name} limit=${limit} value=${tried[name]} />`)}
      <${CopyYaml} plan=${plan} windows=${windows} tried=${tried} />
    </div>
    <div class=${isAsking && found ? 'waiting' : ''} aria-busy=${isAsking}>
      ${error !== undefined && html`<p class="empty" role="alert">${error}</p>`}
      ${
        found === undefined
          ? error === undefined && html`<p class="empty" role="status">Replaying …</p>`
          : html`<${Verdict} found=${found} isTried=${isTried} tried=${tried} plan=${plan} openKey=${openKey} whatIf=${whatIf} />`
      }
    </div>
  <//>`;
}

function LimitField({ window, limit, value = limit }) {
  /** What is being written and is no limit, such as nothing; otherwise the address has it. */
  const [draft, setDraft] = useState(/** @type {string | undefined} */ (undefined));
  const onInput = (/** @type {any} */ { target }) => {
    const number = Number(target.value);
    const isLimit = Number.isInteger(number) && number >= 1 && number <= 1e15;
    setDraft(isLimit ? undefined : target.value);
    if (isLimit) changeQuery({ [window]: number === limit ? undefined : String(number) }, { replace: true });
  };
  return html`<label>
    ${`${count(limit)} ${per(window)} → `}
    <input type="number" min="1" step="1" name=${window} value=${draft ?? value} onInput=${onInput} onBlur=${() => setDraft(undefined)} />
  </label>`;
}

function Verdict({ found, isTried, tried, plan, openKey, whatIf }) {
  const { totals, reproduced, keys, moreKeys, activeKeys, examinedKeys } = found;
  if (activeKeys === 0) return html`<p class="empty">No key of ${plan} sent a request in this time.</p>`;
  const part =
    examinedKeys < activeKeys
      ? ` Of ${count(activeKeys)} active keys, ${count(examinedKeys)} are replayed.`
      : '';
  return html`
    <p class="sentence verdict-text" role="status">${isTried ? sentenceOf(totals, tried) : `${counted(totals.refusedNow, 'request')} of ${count(totals.offered)} (${percent(totals.refusedNow / totals.offered)}) were refused. Drag a limit, or write another one.`}${part}</p>
    <${Certainty} totals=${totals} reproduced=${reproduced} />
    ${keys.length > 0 && html`<${KeyTable} keys=${keys} openKey=${openKey} isTried=${isTried} />`}
    ${moreKeys > 0 && html`<p class="more">and ${counted(moreKeys, 'key')} more</p>`}
    ${openKey !== undefined && found.minutes !== undefined && html`<${Picture} id=${openKey} minutes=${found.minutes} isTried=${isTried} ...${whatIf} />`}
  `;
}

/** How far the sentence above can be relied on, folded: a line that says whether it is exact, and behind it why not. */
function Certainty({ totals, reproduced }) {
  const { refusedThenMin, refusedThenMax } = totals;
  const { recordedRefusals, replayedRefusals, minutesThatDiffer, differences } = reproduced;
  const isBounded = refusedThenMin < refusedThenMax;
  const summary =
    minutesThatDiffer > 0
      ? `An estimate: the replay of the present plan differs from the record in ${counted(minutesThatDiffer, 'minute')}.`
      : isBounded
        ? `Between ${count(refusedThenMin)} and ${counted(refusedThenMax, 'refusal')} with these limits.`
        : 'The replay of the present plan agrees with the record.';
  return html`<details class="certainty">
    <summary class=${minutesThatDiffer > 0 ? 'near' : 'muted'}>${summary}</summary>
    ${isBounded && html`<p>At least ${count(refusedThenMin)} and at most ${counted(refusedThenMax, 'request')} would have been refused: bans, limits of the second and mixed costs depend on the order of requests within a minute.</p>`}
    <p>${count(Math.min(recordedRefusals, replayedRefusals))} of ${counted(recordedRefusals, 'recorded refusal')} happen again when the present plan is replayed.</p>
    ${
      minutesThatDiffer > 0 &&
      html`<ul class="differences">
        ${differences.slice(0, differencesShown).map(
          ({ at, keys, of, recordedRefusals, replayedRefusals, why }) => html`<li key=${at}>
            ${clock(Date.parse(at), nowMs())}, ${keys === 1 ? of[0] : counted(keys, 'key')}: recorded ${count(recordedRefusals)},
            replayed ${count(replayedRefusals)}. ${why}
          </li>`,
        )}
      </ul>`
    }
    <p class="muted">In a minute with refusals a client sends less, so such a minute does not show how much it would have sent.</p>
  </details>`;
}

/** @param {any} totals @param {Record<string, number>} tried */
function sentenceOf(
  {
    refusedNow,
    refusedThen,
    refusedThenMin,
    refusedThenMax,
    offered,
    keysRefusedMore,
    keysRefusedLess,
    newlyLimitedKeys,
    freedKeys,
  },
  tried,
) {
  const limits = Object.entries(tried)
    .map(([window, max]) => `${count(max)} ${per(window)}`)
    .join(' and ');
  const change = refusedThen - refusedNow;
  if (refusedThenMin < refusedNow && refusedNow < refusedThenMax)
    return `With ${limits}, it is not certain whether more or fewer requests would have been refused: ${count(refusedNow)} were.`;
  if (change === 0)
    return `With ${limits}, just as many requests would have been refused: ${count(refusedNow)}.`;
  const share = percent(Math.abs(change) / offered);
  const who = change > 0 ? counted(keysRefusedMore, 'key') : counted(keysRefusedLess, 'key');
  const first =
    newlyLimitedKeys > 0
      ? ` ${count(newlyLimitedKeys)} of them ${newlyLimitedKeys === 1 ? 'was' : 'were'} never refused before.`
      : '';
  const freed = freedKeys > 0 ? ` ${counted(freedKeys, 'key')} would not have been refused at all.` : '';
  return `With ${limits}, ${who} would have been refused ${count(Math.abs(change))} ${change > 0 ? 'more' : 'fewer'} requests (${share} of the plan's).${first}${freed}`;
}

function KeyTable({ keys, openKey, isTried }) {
  return html`<table class="cards">
    <thead>
      <tr>
        <th scope="col">Key</th>
        <th scope="col">Change</th>
        <th scope="col" class="number">Asked</th>
        <th scope="col" class="number">Refused now</th>
        <th scope="col" class="number">Then</th>
        <th scope="col">First time</th>
        <th scope="col" class="number">Minutes with refusals</th>
        <th scope="col"><span class="sr">Picture</span></th>
      </tr>
    </thead>
    <tbody>
      ${keys.map(
        (key) => html`<tr key=${key.id}>
          <td class="id"><a href=${keyPath(key.id)}>${key.id}</a></td>
          <td data-label="Change"><${ChangeWord} ...${key} /></td>
          <td class="number" data-label="Asked">${count(key.offered)}</td>
          <td class="number" data-label="Refused now">${count(key.refusedNow)}</td>
          <td class="number" data-label="Then" title=${boundsText(key)}>${count(key.refusedThen)}${key.refusedThenMin !== undefined && ' *'}</td>
          <td data-label="First time">${key.firstRefusedAt === undefined ? '–' : html`<time dateTime=${key.firstRefusedAt} title=${fullInstant(Date.parse(key.firstRefusedAt))}>${clock(Date.parse(key.firstRefusedAt), nowMs())}</time>`}</td>
          <td class="number" data-label="Minutes with refusals">${count(key.censoredMinutes)}</td>
          <td>
            <button
              type="button"
              aria-label=${`Picture of ${key.id}`}
              aria-pressed=${openKey === key.id}
              onClick=${() => changeQuery({ key: openKey === key.id ? undefined : key.id }, { replace: true })}
            >
              Picture
            </button>
          </td>
        </tr>`,
      )}
    </tbody>
  </table>
  ${isTried && keys.some(({ refusedThenMin }) => refusedThenMin !== undefined) && html`<p class="muted">* between two bounds: point at it</p>`}`;
}

function boundsText({ refusedThenMin, refusedThenMax }) {
  return refusedThenMin === undefined
    ? ''
    : `at least ${count(refusedThenMin)}, at most ${count(refusedThenMax)}`;
}

function ChangeWord({ refusedNow, refusedThen }) {
  if (refusedNow === 0 && refusedThen > 0) return html`<span class="state bad">newly limited</span>`;
  if (refusedNow > 0 && refusedThen === 0) return html`<span class="state">freed</span>`;
  if (refusedThen > refusedNow) return html`<span class="state near">more</span>`;
  return refusedThen < refusedNow ? html`<span class="state">less</span>` : '';
}

/** A key's row, with its requests under both limits. */
function Picture({ id, minutes, isTried, fromMs, toMs }) {
  const stepMs = toMs - fromMs > dayMs ? 30 * minuteMs : 5 * minuteMs;
  const { timesMs, series } = useMemo(() => {
    const rows = new Map(minutes.map((/** @type {any} */ row) => [Date.parse(row.at), row]));
    const sumOf = (/** @type {any[]} */ rows, /** @type {string} */ name) =>
      rows.reduce((sum, row) => sum + row[name], 0);
    const { timesMs, found } = alongTime(rows, { fromMs, toMs, stepMs, merge: (rows) => rows });
    const line = (/** @type {string} */ name) => found.map((rows) => rows && sumOf(rows, name));
    return {
      timesMs,
      series: [
        { label: 'asked for', colour: 'grey', values: line('offered') },
        { label: 'admitted now', colour: 'blue', values: line('admittedNow') },
        ...(isTried
          ? [{ label: 'admitted then', colour: 'orange', values: line('admittedThen'), isDashed: true }]
          : []),
      ],
    };
  }, [minutes, isTried, fromMs, toMs]);
  return html`<h3 class="picture">${id}, in ${stepMs / minuteMs} minutes each</h3>
    <${Chart}
      kind="lines"
      timesMs=${timesMs}
      fromMs=${fromMs}
      toMs=${toMs}
      series=${series}
      write=${count}
      note="It sent no request in this time."
      label=${`Requests of ${id} and what is admitted under both limits, from ${fullInstant(fromMs)} to ${fullInstant(toMs)}`}
    />`;
}

function CopyYaml({ plan, windows, tried }) {
  const [copied, setCopied] = useState('');
  const limits = windows.map(({ name, limit }) => `${fieldOf(name)}: ${tried[name] ?? limit}`).join(', ');
  const yaml = `plans:\n  ${yamlName(plan)}: { ${limits} }\n`;
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(yaml);
      setCopied('copied');
    } catch {
      // Without TLS, and not on localhost, a browser has no clipboard for pages.
      setCopied(yaml);
    }
    setTimeout(() => setCopied(''), 10_000);
  };
  return html`<button type="button" class="copy" title=${yaml} onClick=${copy}>Copy as YAML</button>
    <span class="muted" role="status">${copied}</span>`;
}

/** A name that YAML could take for something else is quoted. @param {string} name */
function yamlName(name) {
  return /^[A-Za-z][\w-]*$/.test(name) && !/^(true|false|null|yes|no|on|off|y|n)$/i.test(name)
    ? name
    : JSON.stringify(name);
}

/** @param {string} window */
function fieldOf(window) {
  return `per${window.charAt(0).toUpperCase()}${window.slice(1)}`;
}

/** @param {{ name: string }[]} windows @returns {Record<string, undefined>} */
function noLimits(windows) {
  return Object.fromEntries(windows.map(({ name }) => [name, undefined]));
}
