import { isoOf } from '../../shared/schema/dates-and-durations.ts';
import { figure } from '../../shared/words/figures.js';
import { durationText } from '../wording.ts';
import { aboutNoKey, type ListedKinds, webhook } from './kind.ts';

export interface CertificateExpiring {
  readonly kind: 'certificate_expiring';
  readonly listener: string;
  /** The message of the log line. */
  readonly notice: string;
  readonly notAfterMs: number;
}

/** Another worker replaces it. */
interface WorkerEvent {
  readonly kind: 'worker_ended';
  /** From 1. */
  readonly worker: number;
  readonly pid: number;
  /** `SIGKILL` or `exit code 1`. */
  readonly reason: string;
  /** The time until the new worker starts. */
  readonly pauseMs: number;
}

export type ProcessEvent =
  | CertificateExpiring
  | { readonly kind: 'recording_paused'; readonly reason: string }
  | { readonly kind: 'recording_resumed' }
  | WorkerEvent;

/** Processes check Redis's memory every ten seconds, but not at the same time. */
const ofRecording = {
  ...aboutNoKey,
  subject: () => 'usage',
  identity: () => ({ kind: 'near', what: [], within: 'changesMergedWithinMs' }) as const,
};

export const processKinds: ListedKinds<ProcessEvent> = {
  certificate_expiring: {
    ...aboutNoKey,
    subject: ({ kind }) => kind,
    text: ({ notice }) => `${notice.charAt(0).toUpperCase()}${notice.slice(1)}.`,
    // The text changes with the number of remaining days, so there is one event a day.
    identity: ({ notice }) => ({ kind: 'once', what: [notice] }),
    list: {
      group: 'incident',
      many: 'certificates expire',
      entry: ({ notAfterMs }) => ({ untilAt: isoOf(notAfterMs) }),
    },
  },
  recording_paused: {
    ...ofRecording,
    text: ({ reason }) => `The usage record pauses: ${reason}.`,
    list: { group: 'incident', many: 'times the recording of usage paused', entry: () => ({}) },
    webhook: webhook({
      typeOf: () => 'usage.paused',
      when: { 'usage.paused': 'The usage record pauses, because a Redis server is short of memory.' },
      data: (z) => ({ reason: z.string() }),
      members: ({ reason }) => ({ reason }),
      examples: () => [{ kind: 'recording_paused', reason: 'Redis is full' }],
    }),
  },
  recording_resumed: {
    ...ofRecording,
    text: (_resumed, _nowMs, begun) =>
      begun?.kind === 'recording_paused'
        ? `The usage record resumes. It had paused: ${begun.reason}.`
        : 'The usage record resumes.',
    list: {
      group: 'incident',
      many: 'times the recording of usage resumed',
      entry: () => ({}),
    },
  },
  worker_ended: {
    ...aboutNoKey,
    subject: ({ kind }) => kind,
    text: ({ worker, pid, reason, pauseMs }) =>
      `Worker ${figure(worker)} (pid ${pid}) ended (${reason}); another one is started after ${durationText(pauseMs)}.`,
    identity: () => ({ kind: 'own' }),
    list: { group: 'incident', many: 'workers ended', entry: () => ({}) },
  },
};
