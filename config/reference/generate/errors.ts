import { aboutErrors, type ErrorCode, errors } from '../../../gateway/shared/errors.ts';
import { bullet, code, page, pageHead, sentences } from './markdown.ts';

const sides = {
  client: undefined,
  gateway: 'The operators of the gateway must act.',
  upstream: 'The operators of the API must act.',
} as const;

/** The errors that a gateway sends, by status. */
export function errorsPage(): string {
  const byStatus = Map.groupBy(
    (Object.keys(errors) as ErrorCode[]).map((name) => ({ name, about: aboutErrors[name], ...errors[name] })),
    ({ status }) => status,
  );
  return page([
    pageHead('Errors', '`gateway/shared/errors.ts` and `gateway/shared/words/errors.js`'),
    'An error that the gateway sends to a client of the API has the body `{"code", "message", "status"}`, except in a response to HEAD. Programs should use `status` and `code`, because `message` is for people. Errors of the API pass with their own status and body.',
    ...[...byStatus]
      .toSorted(([a], [b]) => a - b)
      .flatMap(([status, entries]) => [
        `## ${status}`,
        entries
          .map(({ name, about, fault }) => bullet(`${code(name)}: ${sentences(about, sides[fault])}`))
          .join('\n'),
      ]),
  ]);
}
