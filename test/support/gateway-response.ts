import { expect } from 'vitest';

/**
 * The header fields of every response of the gateway: three `X-RateLimit` fields, the two `RateLimit` fields of the IETF draft, and the
 * request id.
 */
const onEveryResponse = [
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'ratelimit',
  'ratelimit-policy',
  'x-request-id',
];

/**
 * Asserts the status, and the header fields that every response of the gateway has. Also asserts the body of an error.
 */
export async function expectGatewayResponse(response: Response, status: number): Promise<unknown> {
  const text = await response.text();
  expect(response.status, text).toBe(status);
  for (const name of onEveryResponse)
    expect(response.headers.get(name), `${name} on a ${status}`).toBeTruthy();
  for (const name of onEveryResponse.slice(0, 3)) expect(response.headers.get(name)).toMatch(/^\d+$/);
  expectWindowInForce(response.headers);
  if (status < 400) return text === '' ? undefined : JSON.parse(text);

  expect(response.headers.get('content-type')).toMatch(/^application\/json/);
  const body = JSON.parse(text);
  expect(body).toEqual({ code: expect.any(String), message: expect.any(String), status });
  if (status === 401) expect(response.headers.get('www-authenticate')).toMatch(/^Bearer realm=/);
  if (status === 405) expect(response.headers.get('allow')).toBeTruthy();
  if (status === 429 || status === 503) expect(response.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
  return body;
}

/** The three `X-RateLimit` fields must describe one of the windows in the fields `RateLimit` and `RateLimit-Policy`. */
function expectWindowInForce(headers: Headers): void {
  const policy = headers.get('ratelimit-policy') ?? '';
  const state = headers.get('ratelimit') ?? '';
  const limits = [...policy.matchAll(/"(\w+)";q=(\d+);w=\d+/g)].map(([, name, q]) => [name, q]);
  const remaining = new Map([...state.matchAll(/"(\w+)";r=(\d+);t=\d+/g)].map(([, name, r]) => [name, r]));
  const inForce = limits.find(
    ([name, q]) =>
      q === headers.get('x-ratelimit-limit') &&
      remaining.get(name ?? '') === headers.get('x-ratelimit-remaining'),
  );
  expect(inForce, `${policy} | ${state}`).toBeDefined();
}
