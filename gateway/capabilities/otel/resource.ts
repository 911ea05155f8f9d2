import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import type { Settings } from '../../shared/model.ts';
import type { OtelSettings } from './settings/schema.ts';

const instanceId = randomUUID();

/** Read at the first use, because a gateway without a collector does not need it. */
let version: string | undefined;

export interface KeyValue {
  readonly key: string;
  readonly value: { readonly stringValue: string };
}

export function attributesOf(values: Readonly<Record<string, string | number>>): readonly KeyValue[] {
  return Object.entries(values).map(([key, value]) => ({ key, value: { stringValue: String(value) } }));
}

/** The attributes of this process, as JSON of OTLP. The names follow OpenTelemetry's "Resource semantic conventions". */
export function resourceOf({
  environment,
  otel,
}: Pick<Settings, 'environment'> & { readonly otel: OtelSettings }) {
  return {
    attributes: attributesOf({
      'service.name': 'tollgate',
      'service.version': packageVersion(),
      'service.instance.id': instanceId,
      'deployment.environment.name': environment,
      'host.name': hostname(),
      ...otel.resource,
    }),
  };
}

export function scopeOf() {
  return { name: 'tollgate', version: packageVersion() };
}

function packageVersion(): string {
  version ??= String(
    JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')).version,
  );
  return version;
}
