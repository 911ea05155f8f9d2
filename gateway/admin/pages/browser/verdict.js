import { clock, count, counted, duration, percent, rate, shortVersion } from './formats.js';

/**
 * How the gateway is, as sentences, the one that matters most first. `tone`: `bad` where requests fail or are counted wrong,
 * `near` where somebody should look before that happens.
 *
 * @param {object} facts
 * @param {any} facts.state of `/state`
 * @param {import('./live.js').Totals} facts.totals
 * @param {any} facts.lastMinute the row of `/traffic` of the last minute that was recorded, if there is one
 * @param {number} facts.nowMs
 * @returns {{ tone: 'bad' | 'near' | 'well', text: string }[]}
 */
export function verdict({ state, totals, lastMinute, nowMs }) {
  /** @type {{ tone: 'bad' | 'near', text: string }[]} */
  const found = [
    ...storeFaults(state, nowMs),
    ...upstreamFaults(state),
    ...errorFaults(lastMinute),
    ...processFaults(state),
  ];
  if (state.config.lastError !== undefined) {
    const inForce = shortVersion(state.config.version);
    // Under its first line is an excerpt of the file, which Changes shows.
    const [problem] = state.config.lastError.split('\n', 1);
    found.push({
      tone: 'near',
      text: `The configuration on disk is not valid, ${inForce} stays in force: ${problem}`,
    });
  }
  if (state.usage?.pausedBecause !== undefined) {
    found.push({ tone: 'near', text: `What keys use is not recorded: ${state.usage.pausedBecause}.` });
  }
  for (const { notice } of Object.values(state.certificates)) {
    if (notice !== undefined) found.push({ tone: 'near', text: `${sentence(notice)}.` });
  }
  if (found.length > 0) return found;
  return [{ tone: 'well', text: `All well. ${trafficSentence(totals)}` }];
}

/** @param {any} state @param {number} nowMs @returns {{ tone: 'bad' | 'near', text: string }[]} */
function storeFaults({ store, processes }, nowMs) {
  if (store.available) return [...missingCommands(store), ...storeFaultsOfOthers(processes)];
  const sinceMs = Date.parse(store.sinceAt ?? '');
  const since = Number.isNaN(sinceMs) ? '' : ` since ${clock(sinceMs, nowMs)} (${duration(nowMs - sinceMs)})`;
  const servers = store.servers ?? [];
  const away = servers.filter((server) => !server.available);
  const isPart = away.length < servers.length;
  const what = isPart
    ? `${away.length} of ${servers.length} servers of Redis (${away.map(({ name }) => name).join(', ')})`
    : 'Redis';
  const effect =
    store.onFailure === 'refuse'
      ? `requests with a key${isPart ? ' of theirs' : ''} are answered 503`
      : `limits${isPart ? ' of their keys' : ''} are counted by each process on its own`;
  return [
    ...missingCommands(store),
    { tone: 'bad', text: `${what} ${isPart && away.length > 1 ? 'are' : 'is'} away${since}; ${effect}.` },
  ];
}

/** @param {any} store @returns {{ tone: 'bad', text: string }[]} */
function missingCommands({ missingCommands = [] }) {
  if (missingCommands.length === 0) return [];
  const text = `The Redis user may not run ${missingCommands.join(', ')}: its ACL must allow them.`;
  return [{ tone: 'bad', text }];
}

/** Redis may be there for the process that answers and not for another. @param {any[]} processes @returns {{ tone: 'bad', text: string }[]} */
function storeFaultsOfOthers(processes) {
  const away = processes.filter((one) => one.store?.available === false);
  if (away.length === 0) return [];
  const text = `Redis is away for ${count(away.length)} of ${counted(processes.length, 'process', 'processes')}: ${away.map(nameOf).join(', ')}.`;
  return [{ tone: 'bad', text }];
}

/** @param {any} state @returns {{ tone: 'bad' | 'near', text: string }[]} */
function upstreamFaults({ upstreams }) {
  return upstreams.flatMap(({ name, targets, lookupError }) => {
    const named = upstreams.length > 1 ? ` ${name}` : '';
    const down = targets.filter((target) => !target.healthy);
    /** @type {{ tone: 'bad' | 'near', text: string }[]} */
    const found = [];
    if (down.length > 0 && down.length === targets.length) {
      found.push({ tone: 'bad', text: `The upstream${named} has no healthy target: its requests fail.` });
    } else if (down.length > 0) {
      const addresses = down.map(({ address }) => address).join(', ');
      const text = `${count(down.length)} of ${counted(targets.length, 'target')} of the upstream${named} ${down.length === 1 ? 'is' : 'are'} down: ${addresses}.`;
      found.push({ tone: 'near', text });
    }
    if (lookupError !== undefined) {
      // Its last addresses are kept.
      const tone = targets.length === 0 ? 'bad' : 'near';
      found.push({
        tone,
        text: `The host name of the upstream${named} cannot be looked up: ${lookupError}.`,
      });
    }
    return found;
  });
}

/** From how many failures in a minute, and which part of its requests, one of them is worth a sentence. */
const errorsMin = 5;
const errorPartMin = 0.01;

/** Whose fault it is. @param {any} lastMinute @returns {{ tone: 'bad' | 'near', text: string }[]} */
function errorFaults(lastMinute) {
  if (lastMinute === undefined) return [];
  const { requests, failedByGateway, failedByUpstream } = lastMinute;
  const isMany = (/** @type {number} */ failed) => failed >= errorsMin && failed / requests >= errorPartMin;
  /** @type {{ tone: 'bad', text: string }[]} */
  const found = [];
  if (isMany(failedByUpstream)) {
    const text = `${percent(failedByUpstream / requests)} of the requests of the last minute failed at the upstream (${count(failedByUpstream)} × 5xx or cut off); the gateway itself is well.`;
    found.push({ tone: 'bad', text });
  }
  if (isMany(failedByGateway)) {
    const text = `${percent(failedByGateway / requests)} of the requests of the last minute failed in the gateway (${count(failedByGateway)} × 5xx).`;
    found.push({ tone: 'bad', text });
  }
  return found;
}

/** @param {any} state @returns {{ tone: 'bad' | 'near', text: string }[]} */
function processFaults({ processes, isComplete, store, config, answeredBy, workers }) {
  /** @type {{ tone: 'bad' | 'near', text: string }[]} */
  const found = [];
  if (workers && workers.serving < workers.configured) {
    const text = `${count(workers.serving)} of ${counted(workers.configured, 'worker')} of this gateway serve.`;
    found.push({ tone: workers.serving === 0 ? 'bad' : 'near', text });
  }
  const others = processes.filter((one) => one.configVersion !== config.version);
  if (others.length > 0) {
    const own = processes.find((one) => one.id === answeredBy);
    const list = others
      .map(({ host, pid, configVersion }) => `${nameOf({ host, pid })} has ${shortVersion(configVersion)}`)
      .join(', ');
    const where = own === undefined ? 'this one' : nameOf(own);
    const text = `${count(others.length)} of ${counted(processes.length, 'process', 'processes')} ${others.length === 1 ? 'has' : 'have'} another configuration than ${where} (${shortVersion(config.version)}): ${list}.`;
    found.push({ tone: 'near', text });
  }
  const leaving = processes.filter(({ phase }) => phase === 'draining').length;
  if (leaving > 0) {
    found.push({
      tone: 'near',
      text: `${counted(leaving, 'process', 'processes')} of ${count(processes.length)} drain.`,
    });
  }
  if (!isComplete && store.available) {
    found.push({ tone: 'near', text: 'Only what this process knows is shown: Redis gives no answer.' });
  }
  return found;
}

/** @param {{ host: string, pid: number }} process */
function nameOf({ host, pid }) {
  return `${host} (pid ${pid})`;
}

/** @param {import('./live.js').Totals} totals */
function trafficSentence({ perSecond, outcomes }) {
  if (perSecond === 0) return 'No request came in the last ten seconds.';
  const refused = outcomes['429'] ?? 0;
  const served = `${rate(perSecond)} requests a second`;
  if (refused === 0) return `${served}, none of them refused.`;
  return `${served}, ${percent(refused / perSecond)} of them refused.`;
}

/** @param {string} text */
function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
