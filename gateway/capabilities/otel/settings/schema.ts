import * as z from 'zod';
import { digestStart, list } from '../../../keys/response-parts.ts';
import { timeoutPattern } from '../../../shared/schema/dates-and-durations.ts';
import { marks } from '../../../shared/schema/marks.ts';
import { durationAsMs, expects, fields, flag, text } from '../../../shared/schema/schema-parts.ts';

const defaults = { sample: '1 %', slow: '1s' } as const;

const aUrl = 'an http or https URL such as http://collector:4318, without user, query or fragment';

/** From 0 to 100 %. */
const sharePattern = /^(100(\.0+)?|\d{1,2}(\.\d{1,4})?) ?%$/;
const aShare = expects('a percentage from 0 % to 100 %, such as 1 % or 0.5 %');

/** The output is the number of percent. */
const share = z.codec(z.string(aShare).regex(sharePattern, aShare), z.number(), {
  decode: Number.parseFloat,
  encode: (percent) => `${percent} %`,
});

const aDuration = expects('a duration such as 500ms, 1s or 1m');

const otel = fields('a mapping with url', {
  url: text(aUrl, /^\S{1,2048}$/)
    .refine(isBaseUrl, expects(aUrl))
    .describe(
      'The address of the collector, without `/v1/traces` and `/v1/metrics`, to which the gateway posts (OTLP over HTTP, as JSON). The path is masked wherever the gateway shows the URL.',
    )
    .register(marks, { secretInUrl: 'path' }),
  sample: share
    .prefault(defaults.sample)
    .describe(
      'The share of requests that are recorded as traces. Requests that a trusted proxy marks as sampled, and refused, failed and slow requests, are recorded besides, up to a bound a second.',
    ),
  slow: durationAsMs(z.string(aDuration).regex(timeoutPattern, aDuration))
    .prefault(defaults.slow)
    .describe('From this duration on, a request is slow.'),
  metrics: flag()
    .default(true)
    .describe('Whether the metrics of /metrics are sent, too. Write false if Prometheus reads them.'),
  headersFile: text('the path of a file with header fields')
    .optional()
    .describe(
      'A file with header fields for the collector, such as its token: one `Name: value` a line. Without it, OTEL_EXPORTER_OTLP_HEADERS applies.',
    )
    .register(marks, { secret: true }),
  caFile: text('the path of a PEM file')
    .optional()
    .describe(
      'A PEM file with the authorities that sign the certificate of the collector, in place of the authorities of Node.',
    )
    .register(marks, { file: true }),
  serviceName: text('1 to 64 of the characters A-Z a-z 0-9 . _ -', /^[A-Za-z0-9._-]{1,64}$/)
    .optional()
    .describe(
      'The name of the service in traces and metrics. Without it, OTEL_SERVICE_NAME applies, then `service.name` in OTEL_RESOURCE_ATTRIBUTES, and then `tollgate`.',
    ),
});

export const otelShape = {
  otel: otel
    .optional()
    .describe('The OpenTelemetry collector that gets traces and metrics. A change needs no restart.'),
};

/** The setting as the operator writes it. */
export type StatedOtel = z.output<typeof otel>;

/** The schema of the setting in `/settings`. @param stated its stated members, with their masks */
export const otelShown = {
  otel: (stated: Readonly<Record<string, z.ZodType>>) =>
    z
      .object({
        ...stated,
        caDigestStart: digestStart.optional(),
        headers: list(z.object({ name: z.string(), valueDigestStart: digestStart })).describe(
          'The header fields for the collector, with the first digits of the digests of their values.',
        ),
      })
      .optional()
      .describe('The OpenTelemetry collector.'),
};

declare module '../../interfaces/configuration.ts' {
  interface StatedSettingsMembers extends z.output<z.ZodObject<typeof otelShape>> {}
}

declare module '../../../shared/model.ts' {
  interface SettingsMembers {
    readonly otel?: OtelSettings | undefined;
  }
}

/** The effective settings. */
export interface OtelSettings {
  /** The base of the URLs, without a slash at its end. */
  readonly url: string;
  /** From 0 to 1. */
  readonly share: number;
  readonly slowMs: number;
  readonly metrics: boolean;
  /** By name in lower case. The values are secrets: no log, message or response may show them. */
  readonly headers: Readonly<Record<string, string>>;
  /** PEM. */
  readonly ca?: string | undefined;
  /** Resource attributes that replace the gateway's own attributes of the same names. */
  readonly resource: Readonly<Record<string, string>>;
}

function isBaseUrl(value: string): boolean {
  const url = URL.parse(value);
  return url !== null && /^https?:$/.test(url.protocol) && !/[?#@]/.test(value);
}
