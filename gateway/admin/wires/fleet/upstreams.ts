import * as z from 'zod';
import {
  components,
  count,
  instant,
  isComplete,
  list,
  missing,
  positive,
  processId,
  words,
} from '../../../keys/response-parts.ts';
import { defineWire } from '../../../shared/http/wire.ts';
import { upstreamFigures } from './processes.ts';

export const targetShape = {
  address: z.string(),
  healthy: z.boolean().describe('Whether the target is healthy for every known process.'),
  sinceAt: instant.describe(
    'Since when all processes find the target healthy. If one does not, the earliest time since which a process finds it unhealthy.',
  ),
  inFlight: count.describe('Requests that were sent to the target or wait for it.'),
};

export const targetsAbout =
  'The targets, as all known processes together see them. In a fleet of more than 500 processes, the figures of a target lack some processes for which it is healthy.';

export const target = z.object({
  ...targetShape,
  processes: list(
    z.object({
      id: processId,
      healthy: z.boolean(),
      sinceAt: instant.describe('When `healthy` last changed.'),
      inFlight: count,
      tunnels: count.describe('Open WebSockets.'),
      full: z.boolean().describe('Whether all connections to the target are in use.'),
      reason: z.string().optional().describe('Why the target is not healthy.'),
    }),
  ),
});

export const lookupError = z.string().optional().describe('Why the host name cannot be resolved.');

export const upstreamsPage = z
  .object({
    isComplete,
    missing,
    upstreams: list(
      z.object({
        name: z.string(),
        url: z.string(),
        health: z
          .string()
          .optional()
          .describe(
            'The path of the health check, which a healthy target answers with 2xx. Absent if a target is healthy when it accepts a connection.',
          ),
        host: words('keep', 'target'),
        encodedSlashes: words('refuse', 'forward'),
        timeouts: z.object({ connectMs: positive, headersMs: positive, totalMs: positive }),
        failing: z
          .object({
            share: z.string().describe('The share of failed requests, such as `1 %`.'),
            failures: positive.describe('The number of failed requests.'),
          })
          .describe('The upstream counts as failing when both are reached in a minute.'),
        failingSinceAt: instant
          .optional()
          .describe('Since when the upstream has been failing; absent while it is well.'),
        lastMinute: z.object(upstreamFigures),
        lookupError,
        targets: list(target).describe(targetsAbout),
      }),
    ),
  })
  .register(components, { id: 'Upstreams' });

export const listUpstreamsWire = defineWire({
  method: 'GET',
  path: '/upstreams',
  operationId: 'listUpstreams',
  tag: 'Fleet',
  summary: 'The upstreams',
  description:
    'Every upstream with its targets, at most 64 from each process. The first upstream is the default.',
  answers: { 200: { description: 'The upstreams.', schema: upstreamsPage } },
});
