/**
 * An example client for Node and browsers that backs off correctly. Copy this client and adapt it. The client slows down before the limit
 * is used up, waits at least Retry-After plus a random time, and never retries a request that the API may have carried out.
 */
const attemptsMax = 5;
const waitMaxMs = 60_000; // after a longer Retry-After (the day limit is used up, a ban), the caller gets the response
const gapMaxMs = 5_000;
const idempotent = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export function createClient(baseUrl, key) {
  let nextMs = 0; // the earliest time of the next request
  let gapMs = 0; // the pause between two requests

  /** Spreads the last fifth of a window's requests over the window's remaining time. */
  function pace({ headers }) {
    const [limit, remaining, reset] = ['Limit', 'Remaining', 'Reset'].map((name) =>
      Number(headers.get(`X-RateLimit-${name}`) ?? Number.NaN),
    );
    const leftMs = reset * 1_000 - (Date.parse(headers.get('Date')) || Date.now()); // on the server's clock
    const isScarce = remaining < limit / 5 && leftMs > 0;
    gapMs = isScarce ? Math.min(leftMs / (remaining + 1), remaining > 0 ? gapMaxMs : waitMaxMs) : 0;
    if (isScarce) nextMs = Math.max(nextMs, performance.now() + gapMs);
  }

  /** @param options the options of `fetch`; the body must be a value that can be sent twice, such as a string */
  return async function request(path, { method = 'GET', headers = {}, ...options } = {}) {
    for (let attempt = 1; ; attempt++) {
      for (let waitMs = nextMs - performance.now(); waitMs > 0; waitMs = nextMs - performance.now())
        await sleep(waitMs);
      nextMs = performance.now() + gapMs;
      const all = { ...options, method, headers: { ...headers, Authorization: `Bearer ${key}` } };
      const response = await fetch(baseUrl + path, all).catch((error) => error);
      const isResponse = response instanceof Response;
      if (isResponse) pace(response);
      // A 429 shows that the API did not carry out the request. After a 502, 503 or 504, the API may have carried out the request. Even
      // if no response arrives, the API may have carried out the request.
      const isRefused = isResponse && response.status === 429;
      const hasFailed = !isResponse || (response.status >= 502 && response.status <= 504);
      const isRepeatable = isRefused || (hasFailed && idempotent.has(method));
      const retryAfterMs = isResponse ? Number(response.headers.get('Retry-After') ?? 0) * 1_000 : 0;
      if (!isRepeatable || attempt === attemptsMax || !(retryAfterMs <= waitMaxMs)) {
        if (isResponse) return response;
        throw response;
      }
      if (isResponse) await response.body?.cancel();
      nextMs = Math.max(nextMs, performance.now() + retryAfterMs + Math.random() * 500 * 2 ** attempt);
    }
  };
}
