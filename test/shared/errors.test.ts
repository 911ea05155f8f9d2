import { expect, test } from 'vitest';
import { errorBody } from '../../gateway/shared/errors.ts';

test('an Error body has the code, its public message and the status of the response', () => {
  expect(JSON.parse(errorBody('not_found'))).toEqual({
    code: 'not_found',
    message: 'There is no such path.',
    status: 404,
  });
});

test('each code and message has its own body, in any order', () => {
  const asked = [
    ['rate_limited', 'Retry in 7 s.', 429],
    ['rate_limited', 'Retry in 8 s.', 429],
    ['store_unavailable', 'Retry in 8 s.', 503],
    ['rate_limited', 'Retry in 8 s.', 429],
    ['rate_limited', 'Retry in 7 s.', 429],
  ] as const;
  const bodies = asked.map(([code, message]) => JSON.parse(errorBody(code, message)));
  expect(bodies).toEqual(asked.map(([code, message, status]) => ({ code, message, status })));
});

test('an Error body is ASCII for any message', () => {
  const message = 'caf\u00e9 \u2028 \u{1f43e} "quoted" \n';
  const body = errorBody('invalid_request', message);
  expect(Buffer.byteLength(body)).toBe(body.length);
  expect(JSON.parse(body).message).toBe(message);
});
