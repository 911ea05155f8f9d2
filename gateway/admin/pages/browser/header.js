import { useRef, useState } from 'preact/hooks';
import { ask, nowMs, queryOf } from './api.js';
import { clock, count, duration, fullInstant, noFigure, shortVersion } from './formats.js';
import { pagePaths } from './page-paths.js';
import { html, isStale, useNow } from './parts.js';
import { goTo, keyPath } from './router.js';
import { routes } from './routes.js';
import { switchTheme, useTheme } from './theme.js';

/** Above every page: where this is, what is in force, and whether the parts are there. */
export function Header({ live, open }) {
  return html`<header class="top">
    <div class="line">
      <a class="name" href="/">Tollgate</a>
      <${Facts} live=${live} />
      <${Search} />
      <${ThemeSwitch} />
    </div>
    <nav aria-label="Pages">
      ${Object.entries(routes).map(([name, { nav }]) => {
        if (!nav) return undefined;
        const isOpen = name === open || (name === 'keys' && open === 'key');
        return html`<a
          key=${name}
          href=${pagePaths[/** @type {keyof typeof pagePaths} */ (name)]}
          aria-current=${isOpen ? 'page' : undefined}
          title=${`g ${nav.letter}`}
          aria-keyshortcuts=${`g ${nav.letter}`}
          >${nav.text}</a
        >`;
      })}
    </nav>
  </header>`;
}

function Facts({ live }) {
  useNow();
  const { state, polled } = live;
  const environment = state?.environment ?? '…';
  const isOld = isStale(polled);
  // Production's chip is filled, so that nobody takes it for another.
  const chip = `chip ${/^prod/i.test(environment) ? 'filled' : ''}`;
  return html`<span class=${chip}>${environment}</span>
    <ul class=${`facts ${isOld ? 'stale' : ''}`} aria-label="State">
      <li><${ConfigFact} state=${state} oldMs=${isOld ? Date.now() - polled.atMs : undefined} /></li>
      <li class="store"><${StoreFact} state=${state} /></li>
      <li><${ProcessesFact} state=${state} /></li>
      <li class="targets"><${TargetsFact} state=${state} /></li>
    </ul>`;
}

/** The version in force, and the one thing about it that matters most. */
function ConfigFact({ state, oldMs }) {
  const now = nowMs();
  if (!state) return html`config ${noFigure}`;
  const { version, loadedAt, lastError } = state.config;
  const loadedMs = Date.parse(loadedAt);
  const note =
    oldMs !== undefined
      ? html`<span class="bad">${`${duration(oldMs)} old`}</span>`
      : lastError !== undefined
        ? html`<span class="near">edit not valid</span>`
        : `${duration(now - loadedMs)} ago`;
  return html`<span title=${`${version}, loaded ${fullInstant(loadedMs)}`}>config <b>${shortVersion(version)}</b> · ${note}</span>`;
}

function StoreFact({ state }) {
  if (!state) return html`store ${noFigure}`;
  const { kind, available, sinceAt, reason } = state.store;
  if (kind === 'memory')
    return html`<span title="Counts are in the memory of one process.">store <b>memory</b></span>`;
  if (available) return html`Redis <b>ok</b>`;
  return html`<span class="bad" title=${reason}>Redis away since ${clock(Date.parse(sinceAt), nowMs())}</span>`;
}

function ProcessesFact({ state }) {
  if (!state) return html`processes ${noFigure}`;
  const { processes, config } = state;
  const others = processes.filter(({ configVersion }) => configVersion !== config.version);
  const title = processes
    .map(({ host, pid, configVersion }) => `${host} pid ${pid}: ${shortVersion(configVersion)}`)
    .join('\n');
  return html`<span title=${title}
    ><b>${count(processes.length)}</b> ${processes.length === 1 ? 'process' : 'processes'}
    ${others.length > 0 && html`<span class="near">, ${count(others.length)} with another config</span>`}</span
  >`;
}

function TargetsFact({ state }) {
  if (!state) return html`targets ${noFigure}`;
  const targets = state.upstreams.flatMap((upstream) => upstream.targets);
  const healthy = targets.filter((target) => target.healthy).length;
  const tone = healthy === targets.length ? '' : healthy === 0 ? 'bad' : 'near';
  const title = targets
    .map(({ address, healthy }) => `${address} ${healthy ? 'healthy' : 'down'}`)
    .join('\n');
  return html`<span class=${tone} title=${title}
    >targets <b>${count(healthy)} of ${count(targets.length)}</b>${tone !== '' && html`<span class="healthy"> healthy</span>`}</span
  >`;
}

/** A key's id opens its page; anything else is looked for in the keys. */
function Search() {
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const [isAsking, setAsking] = useState(false);
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const text = field.current?.value.trim() ?? '';
    if (text === '') return;
    setAsking(true);
    // Not `/keys/{id}`: a browser reports its 404 as an error.
    const isKey = await ask(`/keys${queryOf({ q: text.slice(0, 64), sort: 'id', limit: 500 })}`).then(
      ({ keys }) => keys.some(({ id }) => id === text),
      () => false,
    );
    setAsking(false);
    if (field.current) field.current.value = '';
    field.current?.blur();
    goTo(isKey ? keyPath(text) : `${pagePaths.keys}${queryOf({ q: text.slice(0, 64) })}`);
  };
  return html`<form class="search" role="search" onSubmit=${submit} aria-busy=${isAsking}>
    <input
      id="search"
      ref=${field}
      type="search"
      placeholder="Find a key"
      aria-label="Find a key"
      title="/"
      aria-keyshortcuts="/"
      autocomplete="off"
      spellcheck=${false}
    />
  </form>`;
}

function ThemeSwitch() {
  const theme = useTheme();
  const next = theme === 'dark' ? 'light' : 'dark';
  return html`<button class="theme" type="button" onClick=${switchTheme} aria-label=${`Switch to the ${next} theme`}>
    ${theme === 'dark' ? '☀' : '☾'}
  </button>`;
}
