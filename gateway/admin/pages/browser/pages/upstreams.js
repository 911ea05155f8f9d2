import { nowMs, usePolled } from '../api.js';
import { clock, count, counted, duration } from '../formats.js';
import { Cards, html, Instant, Instead, Section } from '../parts.js';

/** The upstreams with the health of their targets, as each process sees it. */
export function Upstreams() {
  const polled = usePolled('/upstreams', 2_000);
  const happened = usePolled('/events?kind=target_unhealthy&limit=100', 10_000).body?.events ?? [];
  const { upstreams = [], isComplete = true } = polled.body ?? {};
  return html`<div class="upstreams">
    <h1>Upstreams</h1>
    ${!isComplete && html`<p class="near">Redis is away: this is what the process that answers sees alone.</p>`}
    ${upstreams.length === 0 && html`<${Instead} polled=${polled}>There is no upstream.<//>`}
    ${upstreams.map(
      (
        upstream,
        index,
      ) => html`<${Upstream} key=${upstream.name} ...${upstream} isDefault=${index === 0} polled=${polled}
          events=${happened.filter((event) => event.upstream === upstream.name)} />`,
    )}
  </div>`;
}

function Upstream({ name, url, health, host, timeouts, lookupError, targets, isDefault, polled, events }) {
  const healthy = targets.filter((target) => target.healthy).length;
  const all = `${count(healthy)} of ${counted(targets.length, 'target')} healthy`;
  const tone = healthy === 0 ? 'bad' : healthy < targets.length ? 'near' : 'muted';
  return html`<${Section} title=${isDefault && name !== 'default' ? `${name} (default)` : name} polled=${polled} tools=${html`<span class=${tone}>${all}</span>`}>
    <p class="muted">
      ${url} · health ${health} · Host ${host === 'keep' ? 'of the client' : 'of the target'} · connect within
      ${` ${duration(timeouts.connectMs)}`}, headers ${duration(timeouts.headersMs)}, all ${duration(timeouts.totalMs)}
    </p>
    ${lookupError !== undefined && html`<p class="bad">Its host name cannot be looked up: ${lookupError}.</p>`}
    ${
      targets.length === 0
        ? html`<p class="empty">No address is known of it: its requests are answered 503.</p>`
        : html`<${Cards} columns=${columns} items=${targets} idOf=${({ address }) => address} />`
    }
    <${History} events=${events} />
  <//>`;
}

const historyMax = 5;

/** The latest times at which targets of the upstream were unhealthy. */
function History({ events }) {
  if (events.length === 0)
    return html`<p class="muted">No target of it was unhealthy in the last seven days.</p>`;
  return html`<ul class="rows changes" aria-label="Lately">
      ${events.slice(0, historyMax).map(
        ({ id, at, beganAt, text }) => html`<li key=${id}>
          <span class="when"><${Instant} atMs=${Date.parse(at)} /></span>
          <span class="what"
            >${text}${beganAt && html` <span class="muted">${`Since ${clock(Date.parse(beganAt), nowMs())}.`}</span>`}</span
          >
        </li>`,
      )}
    </ul>
    ${events.length > historyMax && html`<p class="more"><a href="/events?kind=incident">All incidents</a></p>`}`;
}

const columns = [
  { title: 'Target', kind: 'id', cell: ({ address }) => address },
  { title: 'State', cell: targetState },
  { title: 'In flight', kind: 'number', cell: ({ inFlight }) => count(inFlight) },
  {
    title: 'WebSockets',
    kind: 'number',
    cell: ({ processes }) => count(processes.reduce((sum, { tunnels }) => sum + tunnels, 0)),
  },
  {
    title: 'Processes',
    cell: ({ processes }) =>
      `healthy for ${count(processes.filter(({ healthy }) => healthy).length)} of ${count(processes.length)}`,
  },
];

/** @param {any} target */
function targetState({ healthy, sinceAt, processes }) {
  const isDown = processes.every((process) => !process.healthy);
  const reasons = [...new Set(processes.flatMap(({ reason }) => reason ?? []))];
  const isFull = processes.some(({ full }) => full);
  const state = healthy ? (isFull ? 'full' : 'healthy') : isDown ? 'down' : 'down for some';
  const tone = healthy ? (isFull ? 'near' : '') : isDown ? 'bad' : 'near';
  return html`<span class=${`state ${tone}`}>${state}</span>
    <span class="muted">${` since ${clock(Date.parse(sinceAt), nowMs())}, ${duration(nowMs() - Date.parse(sinceAt))}`}</span>
    ${reasons.length > 0 && html`<span class="muted">${`: ${reasons.join('; ')}`}</span>`}`;
}
