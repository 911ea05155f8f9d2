import { counted, duration, figure, percent } from '../../../../shared/words/figures.js';
import { nowMs, usePolled } from '../api.js';
import { clock } from '../formats.js';
import { cards, html, instead, noteOf, Section, timedRow } from '../parts.js';

/** @import { BodyOf } from '../../../wires/api-types.ts' */
/** @import { Polled } from '../api.js' */

/** @typedef {BodyOf<'/upstreams'>['upstreams'][number]} Upstream */
/** @typedef {Upstream['targets'][number]} Target */

const historyMax = 5;

/** The page of the upstreams, with the health of their targets. */
export function Upstreams() {
  const polled = usePolled('/upstreams', 2_000);
  const kind = 'target_unhealthy,upstream_failing';
  const happened = usePolled('/events', 10_000, { query: { kind, limit: 100 } });
  const { upstreams = [] } = polled.body ?? {};
  return html`<div class="upstreams">
    <h1>Upstreams</h1>
    ${upstreams.length === 0 && instead(polled, 'There is no upstream.')}
    ${upstreams.map((upstream, index) =>
      upstreamSection(upstream, { isDefault: index === 0, polled, happened }),
    )}
  </div>`;
}

/** @param {Upstream} upstream @param {{ isDefault: boolean, polled: Polled, happened: Polled<BodyOf<'/events'>> }} options */
function upstreamSection(
  { name, url, health, host, encodedSlashes, timeouts, lastMinute, failingSinceAt, lookupError, targets },
  { isDefault, polled, happened },
) {
  const healthy = targets.filter((target) => target.healthy).length;
  const tone = healthy === 0 ? 'bad' : healthy < targets.length ? 'near' : 'muted';
  const all = html`<span class=${tone}>${figure(healthy)} of ${counted(targets.length, 'target')} healthy</span>`;
  return html`<${Section} key=${name} title=${isDefault && name !== 'default' ? `${name} (default)` : name} polled=${polled} tools=${all}>
    <p class="muted">
      ${url} · ${health === undefined ? 'healthy when it accepts a connection' : `health ${health}`} · Host ${host === 'keep' ? 'of the client' : 'of the target'}${encodedSlashes === 'forward' ? ' · forwards %2F' : ''} · timeouts: connect
      ${` ${duration(timeouts.connectMs)}`}, headers ${duration(timeouts.headersMs)}, total ${duration(timeouts.totalMs)}
    </p>
    ${failures(lastMinute, failingSinceAt)}
    ${lookupError !== undefined && html`<p class="bad">The DNS lookup of the upstream's host name fails: ${lookupError}.</p>`}
    ${
      targets.length === 0
        ? html`<p class="empty">The upstream has no known address, so its requests get 503.</p>`
        : cards(targets, {
            idOf: ({ address }) => address,
            columns: [
              { title: 'Target', kind: 'id', cell: ({ address }) => address },
              { title: 'State', cell: targetState },
              { title: 'In flight', kind: 'number', cell: ({ inFlight }) => figure(inFlight) },
              {
                title: 'WebSockets',
                kind: 'number',
                cell: ({ processes }) => figure(processes.reduce((sum, { tunnels }) => sum + tunnels, 0)),
              },
              {
                title: 'Processes',
                cell: ({ processes }) =>
                  `healthy for ${figure(processes.filter(({ healthy }) => healthy).length)} of ${figure(processes.length)}`,
              },
            ],
          })
    }
    ${history(name, happened)}
  <//>`;
}

/** @param {Upstream['lastMinute']} lastMinute @param {string | undefined} failingSinceAt */
function failures({ requests, failed }, failingSinceAt) {
  const text =
    requests === 0
      ? 'No request in the last minute.'
      : failed === 0
        ? `None of ${counted(requests, 'request')} failed in the last minute.`
        : `${figure(failed)} of ${counted(requests, 'request')} failed in the last minute (${percent(failed / requests)}).`;
  if (failingSinceAt === undefined) return html`<p class="muted">${text}</p>`;
  const sinceMs = Date.parse(failingSinceAt);
  const began = `${clock(sinceMs, nowMs())}, ${duration(nowMs() - sinceMs)}`;
  return failed === 0
    ? html`<p class="near">${`${text} Many failed before, since ${began} ago.`}</p>`
    : html`<p class="bad">${`Failing since ${began}. ${text}`}</p>`;
}

/** Lists the last failures of the upstream and its targets. @param {string} name @param {Polled<BodyOf<'/events'>>} happened */
function history(name, happened) {
  const events = happened.body?.events.filter(({ upstream }) => upstream === name) ?? [];
  if (events.length === 0) {
    const none = 'The upstream did not fail and no target was unhealthy in the last seven days.';
    const known = 'This gateway knows of no failure of the upstream, and Redis is away.';
    return html`<p class="muted">${happened.body?.missing ? known : noteOf(happened, none)}</p>`;
  }
  return html`<ul class="rows changes" aria-label="Lately">
      ${events.slice(0, historyMax).map((event) => {
        const { at, beganAt, kind } = event;
        const time = (/** @type {string} */ instant) => clock(Date.parse(instant), nowMs());
        const lasted =
          beganAt && kind !== 'upstream_well' && ` It lasted from ${time(beganAt)} to ${time(at)}.`;
        return timedRow(event, html`${event.text}<span class="muted">${lasted}</span>`);
      })}
    </ul>
    ${events.length > historyMax && html`<p class="more"><a href="/events?kind=incident">All incidents</a></p>`}`;
}

/** @param {Target} target */
function targetState({ healthy, sinceAt, processes }) {
  const isFull = processes.some(({ full }) => full);
  const isDown = processes.every((process) => !process.healthy);
  const [word, tone] = healthy
    ? isFull
      ? ['full', 'near']
      : ['healthy', '']
    : isDown
      ? ['down', 'bad']
      : ['down for some', 'near'];
  const reasons = [...new Set(processes.flatMap(({ reason }) => reason ?? []))].join('; ');
  const sinceMs = Date.parse(sinceAt);
  return html`<span class=${`state ${tone}`}>${word}</span>
    <span class="muted">${` since ${clock(sinceMs, nowMs())}, ${duration(nowMs() - sinceMs)}${reasons && `: ${reasons}`}`}</span>`;
}
