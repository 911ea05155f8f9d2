/**
 * Fetches a URL over a new connection. `fetch` would keep the connection open for the next request. The listener may close an idle
 * connection at the moment at which a slow client sends a request.
 */
export function fetchOnce(url: string, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  return fetch(url, { headers: { ...headers, connection: 'close' } });
}
