import { h } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { change, nowMs, toApiError } from '../../../admin/pages/browser/api.js';
import { alongTime, Chart } from '../../../admin/pages/browser/charts.js';
import { clock, fullInstant } from '../../../admin/pages/browser/formats.js';
import { CopyButton, cards, choices, html, keyLink, Section } from '../../../admin/pages/browser/parts.js';
import { chosenPeriod } from '../../../admin/pages/browser/periods.js';
import { changeQuery } from '../../../admin/pages/browser/router.js';
import { counted, dayMs, figure, minuteMs, noFigure, percent } from '../../../shared/words/figures.js';
import { per, windowIn } from '../../../shared/words/limit-names.js';
import { isUncertain, termsText, uncertainText } from '../words.js';

/** @import { Plan, PlanSection, ProposedMember, Simulation } from '../../interfaces/pages.ts' */

/** @typedef {Record<string, number>} Limits by the name of the window */
/** @typedef {Simulation['keys'][number]} KeyLine */

const keysListed = 50;
const reasonsShown = 5;
const againMs = 4_000;

/** Shows the effect of the limits that the operator tries, in words and by key. @type {PlanSection} */
export function WhatIf({ present, tried, query, proposals }) {
  const { name: plan } = present;
  const windows = present.windows.filter(({ group }) => group === undefined);
  const ofGroups = present.windows.filter(({ group }) => group !== undefined);
  const period = chosenPeriod(['24h', '7d'], query.get('days') === '7' ? '7d' : null);
  const openKey = query.get('key') ?? undefined;
  // The period ends with the last whole minute before the page was opened, so the gateway reads the usage record only
  // once.
  const toMs = useMemo(() => Math.floor(nowMs() / minuteMs) * minuteMs - 1, []);
  const fromMs = toMs + 1 - period.lengthMs;
  const isTried = Object.keys(tried).length > 0;
  const limits = Object.fromEntries(Object.entries(tried).map(([window, max]) => [fieldOf(window), max]));
  const { found, error, isAsking } = useSimulation({
    from: new Date(fromMs).toISOString(),
    to: new Date(toMs).toISOString(),
    plan,
    ...(isTried && { plans: { [plan]: limits } }),
    ...(openKey !== undefined && { minutesOf: openKey }),
    listed: keysListed,
  });
  const change = (/** @type {Record<string, string | undefined>} */ to) => changeQuery(to, { replace: true });
  const asItIs = Object.fromEntries(windows.map(({ name }) => [name, undefined]));
  const choose = (/** @type {string} */ value) => change({ days: value && '7' });
  const tools = html`${choices(period.texts, { label: 'Period', chosen: period.value, choose })}${' '}
    ${isTried && html`<button type="button" onClick=${() => change(asItIs)}>Reset</button>`}`;
  const stated = [
    ...windows.map(({ name, limit }) => `${fieldOf(name)}: ${tried[name] ?? limit}`),
    ...groupsAsYaml(ofGroups),
  ].join(', ');
  const yaml = `plans:\n  ${yamlName(plan)}: { ${stated} }\n`;
  const proposed = proposals.flatMap((propose) => propose(present, found) ?? []);
  return html`<${Section} title="What if" name="what-if" tools=${tools}>
    <div class="tried">
      ${windows.map(({ name, limit }) => html`<${LimitField} key=${name} window=${name} limit=${limit} value=${tried[name] ?? limit} />`)}
      <${CopyButton} key=${yaml} text=${yaml} label="Copy as YAML" hint=${yaml} />
    </div>
    ${ofGroups.length > 0 && html`<p class="muted">The limits of groups stay as they are here. The command <code>simulate --plan ${plan} --group ${ofGroups[0]?.group} --per-minute 3</code> replays other limits of a group.</p>`}
    <div class=${isAsking && found ? 'waiting' : ''} aria-busy=${isAsking}>
      ${error !== undefined && html`<p class="empty" role="alert">${error}</p>`}
      ${found === undefined && error === undefined && html`<p class="empty" role="status">Replaying …</p>`}
      ${found && verdict(found, { tried, plan })}
      ${isTried && safeEdits(present, { trial: `trial: { ${stated} }`, proposed, isCurrent: !isAsking && error === undefined })}
      ${found && keysOf(found, openKey, isTried)}
      ${openKey !== undefined && found?.minutes !== undefined && h(Picture, { id: openKey, minutes: found.minutes, isTried, fromMs, toMs })}
    </div>
  <//>`;
}

/**
 * Requests a simulation. If the limits have changed when the response arrives, another request follows.
 *
 * @param {{ from: string, [member: string]: unknown }} order the body of `/simulate`
 * @returns {{ found: Simulation | undefined, error: string | undefined, isAsking: boolean }} `found`: the last result
 */
function useSimulation(order) {
  const wanted = JSON.stringify(order);
  const [answer, setAnswer] = useState(
    /** @type {{ to?: string, found?: Simulation, error?: string }} */ ({}),
  );
  const latest = useRef(wanted);
  latest.current = wanted;
  /**
   * Maps the start of a simulated period to the last key in the first result. Later requests for the same period stop
   * at this key, so that all results cover the same keys.
   */
  const until = useRef(/** @type {Record<string, string | undefined>} */ ({}));
  const isUnderWay = useRef(false);
  const again = useRef(/** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined));
  const isLeft = useRef(false);

  useEffect(() => void ask(), [wanted]);
  useEffect(
    () => () => {
      isLeft.current = true;
      clearTimeout(again.current);
    },
    [],
  );

  async function ask() {
    if (isUnderWay.current) return;
    isUnderWay.current = true;
    let asked = '';
    while (asked !== latest.current) {
      asked = latest.current;
      const order = JSON.parse(asked);
      const end = until.current[order.from];
      try {
        const found = await change('POST', '/simulate', { body: { ...order, ...(end && { until: end }) } });
        if (found.next !== undefined) until.current[order.from] ??= found.next;
        setAnswer({ to: asked, found });
      } catch (problem) {
        const { message, status, isResponse } = toApiError(problem);
        setAnswer((before) => ({ ...before, to: asked, error: message }));
        if (!isResponse || status >= 500) askLater();
      }
    }
    isUnderWay.current = false;
  }

  /** Repeats the request later, so that the page recovers when the gateway or Redis is available again. */
  function askLater() {
    if (isLeft.current) return;
    clearTimeout(again.current);
    again.current = setTimeout(() => (document.visibilityState === 'hidden' ? askLater() : ask()), againMs);
  }

  return { found: answer.found, error: answer.error, isAsking: answer.to !== wanted };
}

/** Returns the member `groups` of the plan, as a part of a line of the configuration. @param {Plan['windows']} windows */
function groupsAsYaml(windows) {
  const names = [...new Set(windows.map(({ group }) => group ?? ''))];
  const groups = names.map((name) => {
    const ofGroup = windows.filter(({ group }) => group === name);
    const operations = ofGroup[0]?.operations?.map((id) => JSON.stringify(id)).join(', ');
    const limits = ofGroup.map((one) => `${fieldOf(windowIn(one.name))}: ${one.limit}`);
    return `${yamlName(name)}: { operations: [${operations}], ${limits.join(', ')} }`;
  });
  return groups.length === 0 ? [] : [`groups: { ${groups.join(', ')} }`];
}

/** @param {{ window: string, limit: number, value: number }} props */
function LimitField({ window, limit, value }) {
  /**
   * The text that the operator typed, if it is not a valid limit, for example an empty text. A valid limit is stored in
   * the URL instead.
   */
  const [draft, setDraft] = useState(/** @type {string | undefined} */ (undefined));
  const onInput = (/** @type {any} */ { target }) => {
    const number = Number(target.value);
    const isLimit = Number.isInteger(number) && number >= 1 && number <= 1e15;
    setDraft(isLimit ? undefined : target.value);
    if (isLimit) changeQuery({ [window]: number === limit ? undefined : String(number) }, { replace: true });
  };
  return html`<label>
    ${`${figure(limit)} ${per(window)} → `}
    <input type="number" min="1" step="1" name=${window} value=${draft ?? value} onInput=${onInput} onBlur=${() => setDraft(undefined)} />
  </label>`;
}

/**
 * The lines with which the operator tries the edit, and the members that capabilities propose. The operator pastes a line into the
 * configuration.
 *
 * @param {Plan} plan
 * @param {{ trial: string, proposed: readonly ProposedMember[], isCurrent: boolean }} lines `isCurrent`: whether the simulation has
 * the limits of the page
 */
function safeEdits(plan, { trial, proposed, isCurrent }) {
  const replaced = (/** @type {keyof Plan} */ member) =>
    plan[member] === undefined ? '' : ` It replaces the present ${member}.`;
  return html`<ul class="safe-edits">
    <li>
      <${CopyButton} key=${trial} text=${trial} label="Try it" hint="Copies the line" />
      <code>${trial}</code>
      <p class="muted">Add this line to the plan, and keep its limits. The trial refuses no request, and this page shows the requests that it would have refused.${replaced('trial')}</p>
    </li>
    ${proposed.map(
      ({ name, line, label, text }) => html`<li key=${name}>
        <${CopyButton} key=${line} text=${line} label=${label} hint="Copies the line" isOff=${!isCurrent} />
        <code>${line}</code>
        <p class="muted">${text}${replaced(name)}</p>
      </li>`,
    )}
  </ul>`;
}

/** @param {Simulation} found @param {{ tried: Limits, plan: string }} options */
function verdict({ totals, reproduced, activeKeys, examinedKeys }, { tried, plan }) {
  if (activeKeys === 0) return html`<p class="empty">No key of ${plan} sent a request in this period.</p>`;
  const isTried = Object.keys(tried).length > 0;
  const { refusedNow, offered } = totals;
  const sentence = isTried
    ? sentenceOf(totals, tried)
    : `${counted(refusedNow, 'request')} of ${figure(offered)} (${percent(refusedNow / offered)}) were refused. Drag a limit, or type a new value.`;
  const part =
    examinedKeys < activeKeys
      ? ` Of ${figure(activeKeys)} active keys, ${figure(examinedKeys)} are replayed.`
      : '';
  return html`
    <p class="sentence verdict-text" role="status">${sentence}${part}</p>
    ${certainty(totals, reproduced)}
  `;
}

/** @param {Simulation} found @param {string | undefined} openKey @param {boolean} isTried */
function keysOf({ keys, moreKeys }, openKey, isTried) {
  return html`
    ${keys.length > 0 && keyTable(keys, openKey, isTried)}
    ${isTried && keys.some(({ refusedThenMin }) => refusedThenMin !== undefined) && html`<p class="muted">* An estimate. Point at the number to see its bounds.</p>`}
    ${moreKeys > 0 && html`<p class="more">and ${counted(moreKeys, 'key')} more</p>`}
  `;
}

/**
 * Shows how exact the simulation's result is: a summary with details, which are open if the replay differs from the record.
 *
 * @param {Simulation['totals']} totals @param {Simulation['reproduced']} reproduced
 */
function certainty(totals, reproduced) {
  const { refusedThenMin, refusedThenMax } = totals;
  const terms = termsText(totals);
  const { recordedRefusals, replayedRefusals, minutesThatDiffer, differences } = reproduced;
  const isBounded = refusedThenMin < refusedThenMax;
  const summary =
    minutesThatDiffer > 0
      ? `An estimate: the replay under the limits of their time differs from the record in ${counted(minutesThatDiffer, 'minute')}.`
      : isBounded
        ? `Between ${figure(refusedThenMin)} and ${counted(refusedThenMax, 'refusal')} with these limits.`
        : 'The replay under the limits of their time agrees with the record.';
  return html`<details class="certainty" open=${minutesThatDiffer > 0}>
    <summary class=${minutesThatDiffer > 0 ? 'near' : 'muted'}>${summary}</summary>
    ${isBounded && html`<p>At least ${figure(refusedThenMin)} and at most ${counted(refusedThenMax, 'request')} would have been refused. The exact number depends on the order of requests within a minute, because of bans, limits per second and requests of different costs.</p>`}
    <p>The replay of each minute under the limits of its time reproduces ${figure(Math.min(recordedRefusals, replayedRefusals))} of ${counted(recordedRefusals, 'recorded refusal')}.</p>
    ${
      minutesThatDiffer > 0 &&
      html`<ul class="differences">
        ${[...Map.groupBy(differences, ({ why }) => why)]
          .slice(0, reasonsShown)
          .map(([why, minutes]) => html`<li key=${why}>${differenceText(minutes)} ${why}</li>`)}
      </ul>`
    }
    ${terms !== '' && html`<p>${terms}</p>`}
    <p class="muted">Clients send fewer requests in a minute with refusals. The record does not show how many requests they would have sent.</p>
  </details>`;
}

/** For example "10:31:00 to 10:45:00, acme: recorded 3, replayed 4." @param {Simulation['reproduced']['differences']} minutes */
function differenceText(minutes) {
  const [firstMs, lastMs] = [minutes[0], minutes.at(-1)].map((one) => Date.parse(one?.at ?? ''));
  // The date of the last minute is left out if it is the date of the first.
  const [first, last] = [clock(firstMs ?? 0, nowMs()), clock(lastMs ?? 0, firstMs ?? 0)];
  const when = first === last ? first : `${first} to ${last}`;
  const ids = [...new Set(minutes.flatMap(({ of }) => of))];
  const who = ids.length === 1 ? ids[0] : 'several keys';
  const sumOf = (/** @type {'recordedRefusals' | 'replayedRefusals'} */ name) =>
    figure(minutes.reduce((sum, one) => sum + one[name], 0));
  return `${when}, ${who}: recorded ${sumOf('recordedRefusals')}, replayed ${sumOf('replayedRefusals')}.`;
}

/** @param {Simulation['totals']} totals @param {Limits} tried */
function sentenceOf(totals, tried) {
  const { refusedNow, refusedThen, refusedThenMin, refusedThenMax, newlyLimitedKeys, freedKeys } = totals;
  const limits = Object.entries(tried)
    .map(([window, max]) => `${figure(max)} ${per(window)}`)
    .join(' and ');
  if (isUncertain(totals)) return `With ${limits}, about ${uncertainText(totals)}`;
  if (refusedThen === refusedNow)
    return `With ${limits}, the same number of requests would have been refused: ${figure(refusedNow)}.`;
  const change = Math.abs(refusedThen - refusedNow);
  const isMore = refusedThen > refusedNow;
  const who = counted(isMore ? totals.keysRefusedMore : totals.keysRefusedLess, 'key');
  const first =
    newlyLimitedKeys > 0
      ? ` ${figure(newlyLimitedKeys)} of them ${newlyLimitedKeys === 1 ? 'was' : 'were'} never refused before.`
      : '';
  const freed = freedKeys > 0 ? ` ${counted(freedKeys, 'key')} would not have been refused at all.` : '';
  const share = `(${percent(change / totals.offered)} of the plan's)`;
  const number = `${refusedThenMin < refusedThenMax ? 'about ' : ''}${figure(change)} ${isMore ? 'more' : 'fewer'} requests`;
  if (totals.keysUncertain > 0) {
    const often = `${who} ${isMore ? 'more' : 'less'} often`;
    const others = `${counted(totals.keysUncertain, 'key')} more or less often, depending on the order of the requests`;
    return `With ${limits}, ${number} would have been refused ${share}: ${often}, and ${others}.${first}${freed}`;
  }
  return `With ${limits}, ${who} would have been refused ${number} ${share}.${first}${freed}`;
}

/** @param {readonly KeyLine[]} keys @param {string | undefined} openKey @param {boolean} isTried */
function keyTable(keys, openKey, isTried) {
  /** @type {import('../../../admin/pages/browser/parts.js').Column<KeyLine>} */
  const refusedNow = {
    title: isTried ? 'Refused now' : 'Refused',
    kind: 'number',
    cell: ({ refusedNow }) => figure(refusedNow),
  };
  /** @type {import('../../../admin/pages/browser/parts.js').Column<KeyLine>} */
  const refusedThen = {
    title: 'Refused then',
    kind: 'number',
    cell: ({ refusedThen, refusedThenMin }) =>
      `${figure(refusedThen)}${refusedThenMin === undefined ? '' : ' *'}`,
    cellHint: ({ refusedThenMin, refusedThenMax }) =>
      refusedThenMin === undefined
        ? undefined
        : `at least ${figure(refusedThenMin)}, at most ${figure(refusedThenMax)}`,
  };
  return cards(keys, {
    idOf: ({ id }) => id,
    columns: [
      { title: 'Key', kind: 'id', cell: ({ id }) => keyLink({ id }) },
      ...(isTried ? [{ title: 'Change', cell: changeWord }] : []),
      { title: 'Requests', kind: 'number', cell: ({ offered }) => figure(offered) },
      ...(isTried ? [refusedNow, refusedThen] : [refusedNow]),
      {
        title: 'First refusal',
        cell: ({ firstRefusedAt: at }) =>
          at === undefined
            ? noFigure
            : html`<time dateTime=${at} title=${fullInstant(Date.parse(at))}>${clock(Date.parse(at), nowMs())}</time>`,
      },
      {
        title: 'Minutes with refusals now',
        kind: 'number',
        cell: ({ censoredMinutes }) => figure(censoredMinutes),
      },
      {
        title: html`<span class="sr">Chart</span>`,
        narrow: '',
        cell: ({ id }) => html`<button
          type="button"
          aria-label=${`Chart of ${id}`}
          aria-pressed=${openKey === id}
          onClick=${() => changeQuery({ key: openKey === id ? undefined : id }, { replace: true })}
        >
          Chart
        </button>`,
      },
    ],
  });
}

/** @param {KeyLine} key */
function changeWord(key) {
  const { refusedNow, refusedThen } = key;
  const word = (/** @type {string} */ text, tone = '') => html`<span class=${`state ${tone}`}>${text}</span>`;
  if (isUncertain(key)) return word('uncertain');
  if (refusedThen === refusedNow) return '';
  if (refusedThen > refusedNow) return refusedNow === 0 ? word('newly limited', 'bad') : word('more', 'near');
  return word(refusedThen === 0 ? 'freed' : 'fewer');
}

/**
 * A chart of a key's requests. The chart also shows how many requests the present limits admit, and how many requests
 * the tried limits would admit.
 *
 * @param {{ id: string, minutes: NonNullable<Simulation['minutes']>, isTried: boolean, fromMs: number, toMs: number
 * }} props
 */
function Picture({ id, minutes, isTried, fromMs, toMs }) {
  const stepMs = toMs - fromMs > dayMs ? 30 * minuteMs : 5 * minuteMs;
  const { timesMs, series } = useMemo(() => {
    const rows = new Map(minutes.map((row) => [Date.parse(row.at), row]));
    const { timesMs, found } = alongTime(rows, { fromMs, toMs, stepMs, merge: (rows) => rows });
    const line = (/** @type {'offered' | 'admittedNow' | 'admittedThen'} */ name) =>
      found.map((rows) => rows?.reduce((sum, row) => sum + row[name], 0));
    const series = [
      { label: 'sent', colour: 'grey', values: line('offered') },
      { label: 'admitted now', colour: 'blue', values: line('admittedNow') },
      { label: 'admitted then', colour: 'orange', values: line('admittedThen'), isDashed: true },
    ];
    return { timesMs, series: isTried ? series : series.slice(0, 2) };
  }, [minutes, isTried, fromMs, toMs]);
  const label = `Requests of ${id} and what is admitted under both limits, from ${fullInstant(fromMs)} to ${fullInstant(toMs)}`;
  const note = 'No requests in this period.';
  return html`<h3 class="picture">${id}, in steps of ${stepMs / minuteMs} minutes</h3>
    ${h(Chart, { kind: 'lines', timesMs, fromMs, toMs, series, write: figure, note, label })}`;
}

/** Quotes a name that YAML could read as another type. @param {string} name */
function yamlName(name) {
  return /^[A-Za-z][\w-]*$/.test(name) && !/^(true|false|null|yes|no|on|off|y|n)$/i.test(name)
    ? name
    : JSON.stringify(name);
}

/** @param {string} window */
function fieldOf(window) {
  return `per${window.charAt(0).toUpperCase()}${window.slice(1)}`;
}
