import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import type { TestCertificate } from '../../support/make-certificate.ts';

/** A message type of the official definitions, which pbjs has generated from the `.proto` files. */
interface MessageType {
  fromObject(json: object): object;
  toObject(message: object, options: object): object;
  encode(message: object): { finish(): Uint8Array };
  decode(octets: Uint8Array): object;
}

const require = createRequire(import.meta.url);
const root = require('@opentelemetry/otlp-transformer/build/src/generated/root.js');
const { trace, metrics } = root.opentelemetry.proto.collector;
const types: Readonly<Record<string, MessageType>> = {
  '/v1/traces': trace.v1.ExportTraceServiceRequest,
  '/v1/metrics': metrics.v1.ExportMetricsServiceRequest,
};

/** A request to the collector. */
interface Exported {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
  readonly atMs: number;
}

export interface CollectedSpan {
  readonly name: string;
  readonly kind: 'server' | 'client';
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly flags: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, string | number>>;
  readonly status: { readonly code?: number; readonly message?: string } | undefined;
  readonly resource: Readonly<Record<string, string | number>>;
}

export interface CollectedMetric {
  readonly name: string;
  readonly unit: string;
  readonly sum?: Points & { readonly aggregationTemporality: number; readonly isMonotonic: boolean };
  readonly gauge?: Points;
  readonly histogram?: Points & { readonly aggregationTemporality: number };
  readonly resource: Readonly<Record<string, string | number>>;
}

interface Points {
  readonly dataPoints: readonly {
    readonly attributes?: readonly Attribute[];
    readonly startTimeUnixNano: string;
    readonly timeUnixNano: string;
    readonly asDouble?: number;
    readonly count?: string;
    readonly sum?: number;
    readonly bucketCounts?: readonly string[];
    readonly explicitBounds?: readonly number[];
  }[];
}

interface Attribute {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: string };
}

/** Returns true if the collector has taken the request, which then counts. */
export type Respond = (response: ServerResponse, exported: Exported) => boolean;

export const accept: Respond = (response) => {
  response.writeHead(200, { 'content-type': 'application/json' }).end('{"partialSuccess":{}}');
  return true;
};

/** Responds 200 with this body. */
export function acceptWith(body: string): Respond {
  return (response) => {
    response.end(body);
    return true;
  };
}

export function refuseWith(status: number, headers: Record<string, string> = {}): Respond {
  return (response) => {
    response.writeHead(status, headers).end();
    return false;
  };
}

/** Never responds. */
export const hang: Respond = () => false;

export const reset: Respond = (response) => {
  response.socket?.resetAndDestroy();
  return false;
};

/** Responds 200 with a body of 1 GB. */
export const gigabyte: Respond = (response) => {
  const chunk = Buffer.alloc(65_536, 'x');
  let left = 1_000_000_000;
  const write = (): void => {
    while (left > 0 && !response.destroyed) {
      left -= chunk.length;
      if (!response.write(chunk)) return void response.once('drain', write);
    }
    response.end();
  };
  response.writeHead(200);
  write();
  return true;
};

export type TestCollector = Awaited<ReturnType<typeof startCollector>>;

/** Starts a collector that decodes what it gets with the official definitions of the protocol. */
export async function startCollector({
  respond: first = accept,
  tls,
  port = 0,
}: {
  readonly respond?: Respond;
  readonly tls?: TestCertificate;
  readonly port?: number;
} = {}) {
  let respond = first;
  /** All requests, and those that the collector took. */
  const requests: Exported[] = [];
  const taken: Exported[] = [];
  const listener: RequestListener = (request, response) => {
    response.on('error', () => {});
    const chunks: Buffer[] = [];
    request.on('error', () => {});
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const { url: path = '', headers } = request;
      const one = { path, headers, body: Buffer.concat(chunks), atMs: performance.now() };
      requests.push(one);
      if (respond(response, one)) taken.push(one);
    });
  };
  const server = tls ? createTlsServer({ cert: tls.cert, key: tls.key }, listener) : createServer(listener);
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const address = server.address() as AddressInfo;
  const of = (path: string) => taken.filter((one) => one.path === path);
  return {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${address.port}`,
    port: address.port,
    requests,
    respond(next: Respond) {
      respond = next;
    },
    spans: (): readonly CollectedSpan[] => of('/v1/traces').flatMap(spansIn),
    metrics: (): readonly CollectedMetric[] => of('/v1/metrics').flatMap(metricsIn),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Decodes a body. @throws if it does not match the definitions exactly: with an unknown name, or a value of another type */
function decode({ path, body }: Pick<Exported, 'path' | 'body'>): unknown {
  const type = types[path];
  if (type === undefined) throw new Error(`no signal has the path ${path}`);
  const json = JSON.parse(body.toString('latin1'));
  const octets = type.encode(type.fromObject(withIds(json, (hex) => Buffer.from(hex, 'hex')))).finish();
  const options = {
    longs: String,
    enums: Number,
    arrays: false,
    defaults: false,
    oneofs: false,
    bytes: Array,
  };
  const decoded = withIds(type.toObject(type.decode(octets), options), (id) =>
    Buffer.from(id).toString('hex'),
  );
  const [seen, sent] = [sorted(decoded), sorted(json)].map((value) => JSON.stringify(value));
  if (seen !== sent) throw new Error(`the definitions read\n${seen}\nin\n${sent}`);
  return decoded;
}

/** Converts the ids, which are hex in JSON of OTLP, and octets in the definitions. */
function withIds(value: unknown, convert: (id: never) => unknown): object {
  const walk = (member: unknown, name = ''): unknown => {
    if (/^(traceId|spanId|parentSpanId)$/.test(name)) return convert(member as never);
    if (Array.isArray(member)) return member.map((entry) => walk(entry));
    if (typeof member !== 'object' || member === null) return member;
    return Object.fromEntries(Object.entries(member).map(([key, inner]) => [key, walk(inner, key)]));
  };
  return walk(value) as object;
}

/** Without empty lists and texts, which are defaults of the protocol. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, member]) => member !== '' && !isEmpty(member));
  return Object.fromEntries(
    entries.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([name, member]) => [name, sorted(member)]),
  );
}

function isEmpty(member: unknown): boolean {
  return Array.isArray(member) && member.length === 0;
}

function spansIn(exported: Exported): CollectedSpan[] {
  const { resourceSpans } = decode(exported) as {
    resourceSpans: { resource: Resource; scopeSpans: { spans: RawSpan[] }[] }[];
  };
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map(({ kind, attributes, startTimeUnixNano, endTimeUnixNano, ...span }) => ({
        ...span,
        parentSpanId: span.parentSpanId,
        status: span.status,
        kind: kind === 2 ? ('server' as const) : ('client' as const),
        startMs: Number(startTimeUnixNano) / 1e6,
        endMs: Number(endTimeUnixNano) / 1e6,
        attributes: attributesIn(attributes),
        resource: attributesIn(resource.attributes),
      })),
    ),
  );
}

interface Resource {
  readonly attributes: readonly Attribute[];
}

interface RawSpan
  extends Pick<CollectedSpan, 'name' | 'traceId' | 'spanId' | 'parentSpanId' | 'flags' | 'status'> {
  readonly kind: number;
  readonly attributes: readonly Attribute[];
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
}

function metricsIn(exported: Exported): CollectedMetric[] {
  const { resourceMetrics } = decode(exported) as {
    resourceMetrics: {
      resource: Resource;
      scopeMetrics: { metrics: Omit<CollectedMetric, 'resource'>[] }[];
    }[];
  };
  return resourceMetrics.flatMap(({ resource, scopeMetrics }) =>
    scopeMetrics.flatMap(({ metrics }) =>
      metrics.map((metric) => ({ ...metric, resource: attributesIn(resource.attributes) })),
    ),
  );
}

/** @throws if a name stands twice */
export function attributesIn(attributes: readonly Attribute[] = []): Record<string, string | number> {
  const entries = attributes.map(
    ({ key, value }) => [key, value.stringValue ?? Number(value.intValue)] as const,
  );
  const found = Object.fromEntries(entries);
  if (Object.keys(found).length !== entries.length)
    throw new Error(`a name stands twice: ${JSON.stringify(entries)}`);
  return found;
}
