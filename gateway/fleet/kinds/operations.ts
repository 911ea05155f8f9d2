import { isoOf } from '../../shared/schema/dates-and-durations.ts';
import { counted } from '../../shared/words/figures.js';
import { timeText } from '../wording.ts';
import { exampleKey, type Kinds, webhook } from './kind.ts';

export interface OperationSunset {
  readonly kind: 'operation_sunset';
  readonly operation: string;
  readonly method: string;
  /** The path template, with the path of the base URL. */
  readonly path: string;
  readonly sunsetMs: number;
  /** Whether requests get 410 after the sunset. */
  readonly afterSunset: 'gone' | 'serve';
  /** The mark that was reached: this number of days before the sunset. */
  readonly days: number;
  /** A path template. */
  readonly successor: string | undefined;
  /** Undefined if the usage record is off, or could not be read. */
  readonly called: OperationCallers | undefined;
}

export interface OperationCallers {
  /** The number of days that the figures cover. */
  readonly days: number;
  /** The most frequent caller first. */
  readonly callers: readonly { readonly keyId: string; readonly requests: number }[];
  /** Callers that are not in the list. */
  readonly more: number;
}

export const operationKinds: Kinds<OperationSunset> = {
  operation_sunset: {
    filters: ['operations'],
    about: ({ operation }) => ({ operation }),
    subject: ({ operation }) => `operation ${operation}`,
    text({ method, path, sunsetMs, afterSunset, called }, nowMs) {
      const end = afterSunset === 'gone' ? 'is removed' : 'reaches its sunset';
      const who = called && counted(called.callers.length + called.more, 'key');
      const calls = called && `; ${who} called it in the last ${counted(called.days, 'day')}`;
      return `${method} ${path} ${end} at ${timeText(sunsetMs, nowMs)}${calls ?? ''}.`;
    },
    identity: ({ operation, sunsetMs, days }) => ({ kind: 'once', what: [operation, sunsetMs, days] }),
    webhook: webhook({
      typeOf: () => 'operation.sunset',
      when: { 'operation.sunset': 'An operation has reached 30 days, 7 days or one day before its sunset.' },
      data: (z) => ({
        operation: z.string(),
        method: z.string(),
        path: z.string(),
        sunsetAt: z.iso.datetime(),
        afterSunset: z.enum(['gone', 'serve']).describe('`gone`: requests get 410 after the sunset.'),
        days: z.int().describe('30, 7 or 1.'),
        successor: z.string().optional(),
        callersDays: z.int().optional().describe('The number of days that `callers` covers.'),
        callers: z
          .array(z.strictObject({ key: z.string(), requests: z.int() }))
          .optional()
          .describe(
            'Keys that have called the operation, as many as fit. Absent if the usage record is off or cannot be read.',
          ),
      }),
      list: 'callers',
      members({ operation, method, path, sunsetMs, afterSunset, days, successor, called }) {
        return {
          ...{ operation, method, path, sunsetAt: isoOf(sunsetMs), afterSunset, days, successor },
          callersDays: called?.days,
          callers: called?.callers.map(({ keyId: key, requests }) => ({ key, requests })),
          notListed: called?.more,
        };
      },
      examples: (nowMs) => [
        {
          kind: 'operation_sunset',
          operation: 'listPets',
          method: 'GET',
          path: '/v1/pets',
          sunsetMs: nowMs + 7 * 86_400_000,
          afterSunset: 'gone',
          days: 7,
          successor: '/v1/animals',
          called: { days: 7, callers: [{ keyId: exampleKey.keyId, requests: 1_204 }], more: 0 },
        },
      ],
    }),
  },
};
