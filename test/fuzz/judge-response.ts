import { valuesOf } from './read-message.ts';
import type { ReadRequest } from './read-requests.ts';
import { onlyValue, type ReadResponse } from './read-responses.ts';

/** The header fields that every response must have exactly once, and the form of each value. */
const onEveryResponse: readonly (readonly [name: string, form: RegExp])[] = [
  ['x-ratelimit-limit', /^\d+$/],
  ['x-ratelimit-remaining', /^\d+$/],
  ['x-ratelimit-reset', /^\d{10}$/],
  ['ratelimit', /^"\w+";r=\d+;t=\d+(, "\w+";r=\d+;t=\d+)*$/],
  // The entry of a ban has no window length `w`, and is the last entry.
  ['ratelimit-policy', /^"\w+";q=\d+;w=\d+(, "\w+";q=\d+;w=\d+)*(, "ban";q=0)?$/],
  ['x-request-id', /^[0-9a-f-]{36}$/],
];

const onStatus: Readonly<Record<number, readonly [name: string, form: RegExp]>> = {
  401: ['www-authenticate', /^Bearer realm="[^"]*"/],
  405: ['allow', /^[A-Z]+(, [A-Z]+)*$/],
  429: ['retry-after', /^[1-9]\d*$/],
};

/** The only 5xx status that an input may cause, because neither the gateway nor its backend fails during the test. */
const unknownMethod = 501;

/** The faults of one response. `request` is undefined when the bytes that got the response are not a request. */
export function judgeResponse(response: ReadResponse, request: ReadRequest | undefined): string[] {
  const { status, fields, body } = response;
  const faults: string[] = [];
  const expected = [...onEveryResponse, ...(onStatus[status] ? [onStatus[status]] : [])];
  for (const [name, form] of expected) {
    const value = onlyValue(fields, name);
    if (value === undefined || !form.test(value)) {
      faults.push(`a ${status} has ${name}: ${JSON.stringify(valuesOf(fields, name))}`);
    }
  }
  if (status >= 500 && status !== unknownMethod) faults.push(`the gateway answered ${status}: ${body}`);
  for (const interim of response.interim) {
    const wasAskedFor = request?.fields.some(({ name }) => name === 'expect') ?? false;
    if (interim !== 100 || !wasAskedFor) faults.push(`an interim response ${interim} without Expect`);
  }
  if (status < 400) return [...faults, ...judgeSuccess(response, request)];
  return body === undefined ? faults : [...faults, ...judgeErrorBody({ ...response, body })];
}

/** The backend repeats the request id in its response, so a response to the wrong request is detected. */
function judgeSuccess({ status, fields, body }: ReadResponse, request: ReadRequest | undefined): string[] {
  if (request === undefined) return [`a ${status} answers what is no request`];
  if (request.body === undefined) return [`a ${status} answers a request that is not whole`];
  if (request.method === 'HEAD') return [];
  const expected = JSON.stringify({ seen: onlyValue(fields, 'x-request-id') });
  return body === expected ? [] : [`a ${status} has the body ${body} instead of ${expected}`];
}

function judgeErrorBody({ status, fields, body }: ReadResponse & { readonly body: string }): string[] {
  const faults: string[] = [];
  const type = onlyValue(fields, 'content-type') ?? '';
  if (!/^application\/json(;|$)/.test(type)) faults.push(`a ${status} has the content type ${type}`);
  let error: unknown;
  try {
    error = JSON.parse(body);
  } catch {
    return [...faults, `a ${status} has the body ${JSON.stringify(body)}`];
  }
  return isErrorBody(error, status) ? faults : [...faults, `a ${status} has the body ${body}`];
}

function isErrorBody(value: unknown, status: number): boolean {
  if (typeof value !== 'object' || value === null || Object.keys(value).length !== 3) return false;
  const { code, message, status: named } = value as Record<string, unknown>;
  return (
    typeof code === 'string' && /^[a-z_]+$/.test(code) && typeof message === 'string' && named === status
  );
}
