import { useEffect, useRef, useState } from 'preact/hooks';
import { duration, figure, noFigure, shortVersion } from '../../../shared/words/figures.js';
import { stateText } from '../../words/keys.js';
import { ask, isStale, nowMs, queryOf } from './api.js';
import { Dialog } from './dialog.js';
import { clock, fullInstant } from './formats.js';
import { shortcuts, shortcutsButtonId } from './keyboard.js';
import { pagePaths } from './page-paths.js';
import { html, useNow } from './parts.js';
import { goTo, keyPath } from './router.js';
import { routes } from './routes.js';
import { switchTheme, useTheme } from './theme.js';

/** @import { BodyOf, State } from '../../wires/api-types.ts' */
/** @import { Live } from './live.js' */

/** @param {{ live: Live, open: string | undefined }} props */
export function Header({ live, open }) {
  return html`<header class="top">
    <div class="line">
      <a class="name" href="/">Tollgate</a>
      <${Facts} live=${live} />
      <${Search} />
      <${Shortcuts} />
      <${ThemeSwitch} />
    </div>
    <nav aria-label="Pages">
      ${Object.entries(routes).map(([name, { nav }]) => {
        if (!nav) return undefined;
        const isOpen = name === open || name === routes[/** @type {keyof typeof routes} */ (open)]?.parent;
        return html`<a
          key=${name}
          href=${pagePaths[/** @type {keyof typeof pagePaths} */ (name)]}
          aria-current=${isOpen ? 'page' : undefined}
          title=${`g ${nav.letter}`}
          aria-keyshortcuts=${`g ${nav.letter}`}
          >${nav.text}</a
        >`;
      })}
      <span class="zone">All times are UTC</span>
    </nav>
  </header>`;
}

/** @param {{ live: Live }} props */
function Facts({ live: { state, polled } }) {
  useNow();
  const isOld = isStale(polled);
  // The label "production" is filled with colour, so that operators can distinguish production from other environments.
  const chip = `chip ${/^prod/i.test(state?.environment ?? '') ? 'filled' : ''}`;
  const [config, store, processes, targets] = state
    ? [
        configFact(state, isOld ? Date.now() - polled.atMs : undefined),
        storeFact(state),
        processesFact(state),
        targetsFact(state),
      ]
    : ['config', 'store', 'processes', 'targets'].map((name) => `${name} ${noFigure}`);
  return html`<span class=${chip}>${state?.environment ?? '…'}</span>
    <ul class=${`facts ${isOld ? 'stale' : ''}`} aria-label="State">
      <li>${config}</li>
      <li class="store">${store}</li>
      <li>${processes}</li>
      <li class="targets">${targets}</li>
    </ul>`;
}

/**
 * @param {State} state
 * @param {number | undefined} oldMs
 */
function configFact({ config: { version, loadedAt, lastError } }, oldMs) {
  const loadedMs = Date.parse(loadedAt);
  const note =
    oldMs !== undefined
      ? html`<span class="bad">${`${duration(oldMs)} old`}</span>`
      : lastError !== undefined
        ? html`<span class="near">invalid edit</span>`
        : `${duration(nowMs() - loadedMs)} ago`;
  return html`<span title=${`${version}, loaded ${fullInstant(loadedMs)}`}>config <b>${shortVersion(version)}</b> · ${note}</span>`;
}

/** @param {State} state */
function storeFact({ store: { kind, available, sinceAt, reason } }) {
  if (kind === 'memory')
    return html`<span title="Counts are in the memory of one process.">store <b>memory</b></span>`;
  if (available) return html`Redis <b>ok</b>`;
  return html`<span class="bad" title=${reason}>Redis away since ${clock(Date.parse(sinceAt ?? ''), nowMs())}</span>`;
}

/** @param {State} state */
function processesFact({ processes, config, isComplete }) {
  const others = processes.filter(({ configVersion }) => configVersion !== config.version).length;
  const title = processes.map((one) => `${one.host} pid ${one.pid}: ${shortVersion(one.configVersion)}`);
  return html`<span title=${title.join('\n')}
    ><b>${figure(processes.length)}</b> ${processes.length === 1 ? 'process' : 'processes'}${!isComplete && html`<span class="healthy"> known</span>`}
    ${others > 0 && html`<span class="near differs">, ${figure(others)} with another config</span>`}</span
  >`;
}

/** @param {State} state */
function targetsFact({ upstreams }) {
  const targets = upstreams.flatMap((upstream) => upstream.targets);
  const healthy = targets.filter((target) => target.healthy).length;
  const tone = healthy === targets.length ? '' : healthy === 0 ? 'bad' : 'near';
  const title = targets.map(({ address, healthy }) => `${address} ${healthy ? 'healthy' : 'down'}`);
  return html`<span class=${tone} title=${title.join('\n')}
    >targets <b>${figure(healthy)} of ${figure(targets.length)}</b>${tone !== '' && html`<span class="healthy"> healthy</span>`}</span
  >`;
}

const suggestedMax = 8;
const typedPauseMs = 150;

/** The beginning of an `X-Request-Id`, as the log at a terminal prints it. */
const requestIdStart = /^[0-9a-f]{8}$/i;
/** An `X-Request-Id` of the gateway. */
const wholeRequestId = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * The search field. The id of a key opens the key's page, the id of a request opens the request's page, and any other text
 * searches the keys. The first eight characters of an id open the request's page if no key matches. The field suggests
 * keys while the operator types.
 */
function Search() {
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const [text, setText] = useState('');
  const [isAsking, setAsking] = useState(false);
  const suggested = useSuggested(text);
  const open = async (/** @type {string} */ typed) => {
    const wanted = typed.trim();
    if (wanted === '') return;
    if (wholeRequestId.test(wanted)) {
      setText('');
      field.current?.blur();
      goTo(`/requests/${wanted}`);
      return;
    }
    setAsking(true);
    // The check does not request `/keys/{id}`, because the browser's console logs each 404 as an error.
    const found = suggested.some(({ id }) => id === wanted)
      ? suggested
      : await findKeys(wanted, 500).catch(() => undefined);
    const isKey = found?.some(({ id }) => id === wanted);
    const isRequest = found?.length === 0 && requestIdStart.test(wanted);
    setAsking(false);
    setText('');
    field.current?.blur();
    if (isRequest) goTo(`/requests/${wanted}`);
    else goTo(isKey ? keyPath(wanted) : `${pagePaths.keys}${queryOf({ q: wanted.slice(0, 64) })}`);
  };
  const onInput = (/** @type {any} */ { target: { value }, inputType }) => {
    setText(value);
    // When the operator chooses a suggestion, `inputType` is absent or `insertReplacementText`.
    const isChosen = inputType === undefined || inputType === 'insertReplacementText';
    if (isChosen && suggested.some(({ id }) => id === value)) void open(value);
  };
  const onSubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    void open(text);
  };
  return html`<form class="search" role="search" onSubmit=${onSubmit} aria-busy=${isAsking}>
    <input
      id="search"
      ref=${field}
      type="search"
      list="suggested"
      placeholder="Key or id"
      aria-label="Find a key or request"
      title="/"
      aria-keyshortcuts="/"
      autocomplete="off"
      spellcheck=${false}
      value=${text}
      onInput=${onInput}
    />
    <datalist id="suggested">
      ${suggested.map(({ id, name, plan, state }) => html`<option key=${id} value=${id}>${[name, plan, stateText(state)].filter(Boolean).join(' · ')}</option>`)}
    </datalist>
  </form>`;
}

/** @param {string} text */
function useSuggested(text) {
  const [suggested, setSuggested] = useState(/** @type {BodyOf<'/keys'>['keys']} */ ([]));
  useEffect(() => {
    const wanted = text.trim();
    if (wanted === '') {
      setSuggested([]);
      return undefined;
    }
    const left = new AbortController();
    const timer = setTimeout(() => {
      findKeys(wanted, suggestedMax, left.signal).then(setSuggested, () => {});
    }, typedPauseMs);
    return () => {
      clearTimeout(timer);
      left.abort();
    };
  }, [text]);
  return suggested;
}

/** @param {string} text @param {number} limit @param {AbortSignal} [signal] */
async function findKeys(text, limit, signal) {
  const { keys } = await ask('/keys', { query: { q: text.slice(0, 64), sort: 'id', limit } }, signal);
  return keys;
}

/** The button that opens the list of keyboard shortcuts. The key `?` clicks this button. */
function Shortcuts() {
  const [isOpen, setOpen] = useState(false);
  return html`<button class="help" type="button" id=${shortcutsButtonId} aria-label="Keyboard shortcuts" aria-keyshortcuts="?" onClick=${() => setOpen(true)}>?</button>
    ${
      isOpen &&
      html`<${Dialog} title="Keyboard shortcuts" onClose=${() => setOpen(false)}>
        <table class="shortcuts">
          <tbody>
            ${shortcuts.map(([keys, text]) => html`<tr key=${keys}><th scope="row"><kbd>${keys}</kbd></th><td>${text}</td></tr>`)}
          </tbody>
        </table>
      <//>`
    }`;
}

function ThemeSwitch() {
  const theme = useTheme();
  const next = theme === 'dark' ? 'light' : 'dark';
  return html`<button class="theme" type="button" onClick=${switchTheme} aria-label=${`Switch to the ${next} theme`}>
    ${theme === 'dark' ? '☀' : '☾'}
  </button>`;
}
