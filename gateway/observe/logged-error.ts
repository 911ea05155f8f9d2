import { pino } from 'pino';

/**
 * The members of errors that reach the log, besides type, message and stack. Errors of Node and of libraries have further members that may
 * contain a secret. For example, an error about a URL has the URL, and an error of Redis has the arguments of the command.
 */
const loggedMembers = ['code', 'errno', 'syscall', 'address', 'port'] as const;

export const logSerializers = { err: loggedError };

function loggedError(thrown: unknown): object {
  if (!(thrown instanceof Error)) return { type: typeof thrown, message: 'the thrown value is not an error' };
  const { type, message, stack, aggregateErrors } = pino.stdSerializers.err(thrown);
  const members = loggedMembers.map((name) => [name, Object(thrown)[name]]);
  return {
    type,
    message,
    stack,
    ...Object.fromEntries(members),
    aggregateErrors: aggregateErrors?.map((error: Error) => error.message),
  };
}
