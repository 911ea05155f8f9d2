import { hash } from 'node:crypto';
import { isSecureUrl } from '../../../shared/addresses/secure-url.ts';
import { digestSecret, digestStart } from '../../../shared/secrets.ts';
import type { SettingsFiles, SettingsPart } from '../../interfaces/configuration.ts';
import { addField, readHeaderLines, readPairs } from './header-fields.ts';
import type { OtelSettings, StatedOtel } from './schema.ts';

const headersVariable = 'OTEL_EXPORTER_OTLP_HEADERS';
const resourceVariable = 'OTEL_RESOURCE_ATTRIBUTES';
const nameVariable = 'OTEL_SERVICE_NAME';

/** `otel`: the collector that gets traces and metrics. */
export const otelSettings: SettingsPart = {
  warnings({ otel }) {
    if (otel?.headersFile === undefined || isSecureUrl(new URL(otel.url))) return [];
    const message =
      'the values of `otel.headersFile` travel without TLS; write an https URL, or a collector on this host that adds them';
    return [{ path: ['otel', 'url'], message }];
  },

  shown({ otel }, stated) {
    if (otel === undefined) return {};
    const headers = Object.entries(otel.headers).map(([name, value]) => ({
      name,
      valueDigestStart: digestStart(digestSecret(value)),
    }));
    const caDigestStart = otel.ca && digestStart(hash('sha256', otel.ca, 'hex'));
    return { otel: { ...Object(stated.otel), caDigestStart, headers } };
  },

  compile({ otel }, files) {
    if (otel === undefined) return { otel };
    const { url, sample, slow, metrics, caFile } = otel;
    return {
      otel: {
        url: url.replace(/\/+$/, ''),
        share: sample / 100,
        slowMs: slow,
        metrics,
        headers: readHeaders(otel, files),
        ca: caFile === undefined ? undefined : files.readAuthorities(caFile, ['otel', 'caFile']),
        resource: readResource(otel, files),
      } satisfies OtelSettings,
    };
  },
};

function readHeaders({ headersFile }: StatedOtel, files: SettingsFiles): Readonly<Record<string, string>> {
  if (headersFile === undefined) return readHeadersVariable(files);
  const text = files.read(headersFile, ['otel', 'headersFile']);
  if (text === undefined) return {};
  const { headers, faults } = readHeaderLines(text);
  for (const fault of faults) files.report(headersFile, fault);
  return headers;
}

function readHeadersVariable(files: SettingsFiles): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  for (const [name, value] of readVariable(headersVariable, files)) {
    const fault = addField(headers, name, value);
    if (fault !== undefined) files.refuse(['otel'], `the environment variable ${headersVariable}: ${fault}`);
  }
  return headers;
}

/** The service name of its own variable replaces the one in the list of attributes (OpenTelemetry, "Environment Variables"). */
function readResource({ serviceName }: StatedOtel, files: SettingsFiles): Readonly<Record<string, string>> {
  const name = serviceName ?? files.variable(nameVariable, ['otel']);
  return {
    ...Object.fromEntries(readVariable(resourceVariable, files)),
    ...(name !== undefined && name !== '' && { 'service.name': name }),
  };
}

function readVariable(name: string, files: SettingsFiles): readonly (readonly [string, string])[] {
  const pairs = readPairs(files.variable(name, ['otel']) ?? '');
  if (pairs === undefined)
    files.refuse(['otel'], `the environment variable ${name} must have the form \`name=value,name=value\``);
  return pairs ?? [];
}
