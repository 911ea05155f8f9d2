import { once } from 'node:events';
import { createConnection } from 'node:net';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { logSerializers } from '../../gateway/observe/logged-error.ts';

function logged(err: unknown): string {
  const lines: string[] = [];
  pino({ serializers: logSerializers }, { write: (line) => void lines.push(line) }).error({ err }, 'a bug');
  return lines.join('');
}

function errorOf(run: () => unknown): unknown {
  try {
    return run();
  } catch (error) {
    return error;
  }
}

const secret = 'Xq7Zw9Kv';
const redisError = Object.assign(new Error('WRONGPASS invalid username-password pair'), {
  command: { name: 'auth', args: [secret] },
});

it.each([
  ['of the URL parser', errorOf(() => new URL(`redis://:${secret}/@host`))],
  ['of Redis', redisError],
  ['with a cause', new Error('outer', { cause: redisError })],
  ['that contains other errors', new AggregateError([redisError], 'several')],
  ['with an error as a member', Object.assign(new Error('outer'), { previous: redisError })],
  ['that is no error object', { message: 'an object', password: secret }],
])('an error %s reaches the log without its members', (_what, error) => {
  expect(logged(error)).not.toContain(secret);
});

it('the log has type, message, stack, code and cause of an error', async () => {
  const [refused] = await once(createConnection(1, '127.0.0.1'), 'error').catch((error) => [error]);
  expect(JSON.parse(logged(new Error('outer', { cause: refused }))).err).toMatchObject({
    type: 'Error',
    message: expect.stringMatching(/^outer: connect ECONNREFUSED/),
    stack: expect.stringContaining('logged-error.test.ts'),
  });
  expect(JSON.parse(logged(refused)).err).toMatchObject({
    code: 'ECONNREFUSED',
    syscall: 'connect',
    port: 1,
  });
});
