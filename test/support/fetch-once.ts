/**
 * Fetches over a connection of its own. `fetch` keeps connections open, and the listener may close an idle connection just when a busy
 * machine sends on it.
 */
export function fetchOnce(url: string, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  return fetch(url, { headers: { ...headers, connection: 'close' } });
}
