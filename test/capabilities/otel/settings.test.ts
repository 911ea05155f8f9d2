import { describe, expect, it } from 'vitest';
import { settingsText } from '../../../gateway/admin/settings/settings-view.ts';
import { loadSettings } from '../../../gateway/config/load-settings.ts';
import { formatProblems } from '../../../gateway/config/problems/format-problems.ts';
import { restartNeeded } from '../../../gateway/config/watch-settings.ts';
import { configFolder, mainDocument } from '../../support/config-folder.ts';
import { described } from '../../support/described-replies.ts';
import { makeCertificate } from '../../support/make-certificate.ts';

const url = 'http://collector:4318';
const token = 'T0KEN-of-the-collector';

function load(otel: string, { files = {}, env = {} }: LoadOptions = {}) {
  const folder = configFolder({ ...files, 'tollgate.yaml': `${mainDocument}otel: ${otel}\n` });
  const loaded = loadSettings({ file: folder.file, env });
  const report = loaded.kind === 'invalid' ? formatProblems(loaded.problems) : '';
  return { loaded, report: report.replaceAll(folder.pathOf(''), '') };
}

interface LoadOptions {
  readonly files?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
}

function settingsOf(otel: string, options?: LoadOptions) {
  const { loaded, report } = load(otel, options);
  if (loaded.kind === 'invalid') throw new Error(report);
  return loaded.settings;
}

describe('otel', () => {
  it('has defaults for all but the URL', () => {
    expect(settingsOf(`{ url: ${url}/ }`).otel).toEqual({
      url,
      share: 0.01,
      slowMs: 1_000,
      metrics: true,
      headers: {},
      ca: undefined,
      resource: {},
    });
  });

  it('takes a share from 0 to 100 %, a duration, and a path before /v1', () => {
    const stated = `{ url: https://otlp.example.com/otlp, sample: 0.05 %, slow: 250ms, metrics: false, serviceName: edge }`;
    expect(settingsOf(stated).otel).toMatchObject({
      url: 'https://otlp.example.com/otlp',
      share: 0.0005,
      slowMs: 250,
      metrics: false,
      resource: { 'service.name': 'edge' },
    });
    expect(settingsOf(`{ url: ${url}, sample: 0 % }`).otel?.share).toBe(0);
    expect(settingsOf(`{ url: ${url}, sample: 100 % }`).otel?.share).toBe(1);
  });

  it.each([
    ['{}', '`otel.url` is missing'],
    ['{ url: collector:4318 }', '`otel.url` must be an http or https URL'],
    ['{ url: "http://me:pw@collector:4318" }', '`otel.url` must be an http or https URL'],
    ['{ url: "http://collector:4318?token=a" }', '`otel.url` must be an http or https URL'],
    [`{ url: ${url}, sample: 1 }`, '`otel.sample` must be a percentage from 0 % to 100 %'],
    [`{ url: ${url}, sample: 101 % }`, '`otel.sample` must be a percentage from 0 % to 100 %'],
    [`{ url: ${url}, slow: 0s }`, '`otel.slow` must be a duration such as 500ms'],
    [`{ url: ${url}, headerFile: a }`, 'the field `headerFile` is unknown; did you mean `headersFile`?'],
    [`{ url: ${url}, headersFile: gone }`, '`otel.headersFile`: this file does not exist'],
    [`{ url: ${url}, caFile: gone }`, '`otel.caFile`: this file does not exist'],
  ])('refuses %s', (otel, message) => {
    expect(load(otel).report).toContain(message);
  });

  it.each([
    ['Authorization Bearer a', 1, 'this line has no colon; write `Name: value`'],
    ['a: b\nx y: c', 2, 'the text before the colon is not the name of a header field'],
    ['a: b\n\nA: c', 3, 'the field `a` stands twice'],
    ['Content-Length: 1', 1, 'the gateway sets `content-length` itself; remove this line'],
    ['a:', 1, 'the value of `a` must be 1 or more characters of ASCII'],
    [`a: ${token}\u0007`, 1, 'the value of `a` must be 1 or more characters of ASCII'],
    ['# a comment\n', 1, 'this file has no header field; write `Name: value`'],
    [`a: ${'b'.repeat(9_000)}`, 1, 'this line is longer than 8192 characters'],
    [Array.from({ length: 21 }, (_, index) => `a${index}: b`).join('\n'), 21, 'at most 20 header fields'],
  ])('refuses the header fields %j at their line', (text, line, message) => {
    const { report } = load(`{ url: ${url}, headersFile: fields }`, { files: { fields: text } });
    expect(report).toContain(message);
    expect(report).toMatch(new RegExp(`^fields:${line}:1: `, 'm'));
    expect(report).not.toContain(token);
  });

  it('refuses a file of authorities without a certificate', () => {
    const { report } = load(`{ url: ${url}, caFile: ca.pem }`, { files: { 'ca.pem': 'nothing' } });
    expect(report).toMatch(/^ca\.pem:1:1: this file has no certificate in PEM/m);
  });

  it('warns of header fields that travel without TLS, but not to this host', () => {
    const warningsOf = (to: string) => {
      const { loaded } = load(`{ url: ${to}, headersFile: fields }`, { files: { fields: 'a: b' } });
      return loaded.kind === 'valid' ? loaded.warnings.filter((warning) => warning.includes('otel')) : [];
    };
    expect(warningsOf(url)).toEqual([expect.stringContaining('travel without TLS')]);
    expect(warningsOf('http://127.0.0.1:4318')).toEqual([]);
    expect(warningsOf('https://collector:4318')).toEqual([]);
  });
});

describe('the environment variables of OpenTelemetry', () => {
  const env = {
    OTEL_SERVICE_NAME: 'of-env',
    OTEL_RESOURCE_ATTRIBUTES: 'service.name=less,team=a%20b%2Cc,region=us',
    OTEL_EXPORTER_OTLP_HEADERS: `Authorization=Bearer%20${token},x-tenant=1`,
  };

  it('fill what the setting leaves open', () => {
    expect(settingsOf(`{ url: ${url} }`, { env }).otel).toMatchObject({
      headers: { authorization: `Bearer ${token}`, 'x-tenant': '1' },
      resource: { 'service.name': 'of-env', team: 'a b,c', region: 'us' },
    });
  });

  it('do not replace what the setting states', () => {
    const stated = `{ url: ${url}, serviceName: edge, headersFile: fields }`;
    expect(settingsOf(stated, { env, files: { fields: 'a: b' } }).otel).toMatchObject({
      headers: { a: 'b' },
      resource: { 'service.name': 'edge', team: 'a b,c', region: 'us' },
    });
  });

  it('switch nothing on, and their faults do not matter without the setting', () => {
    const folder = configFolder({ 'tollgate.yaml': mainDocument });
    const broken = { ...env, OTEL_EXPORTER_OTLP_HEADERS: 'broken', OTEL_EXPORTER_OTLP_ENDPOINT: url };
    const loaded = loadSettings({ file: folder.file, env: broken });
    if (loaded.kind === 'invalid') throw new Error(formatProblems(loaded.problems));
    expect(loaded.settings.otel).toBeUndefined();
  });

  it.each([
    ['OTEL_EXPORTER_OTLP_HEADERS', `${token}`, 'must have the form `name=value,name=value`'],
    ['OTEL_EXPORTER_OTLP_HEADERS', `host=${token}`, 'the gateway sets `host` itself'],
    ['OTEL_RESOURCE_ATTRIBUTES', 'a=%zz', 'must have the form `name=value,name=value`'],
  ])('%s=%s is refused without its value', (name, value, message) => {
    const { report } = load(`{ url: ${url} }`, { env: { [name]: value } });
    expect(report).toContain(`the environment variable ${name}`);
    expect(report).toContain(message);
    expect(report).not.toContain(token);
  });
});

it('a variable may name a file with its value, and a file that cannot be read is a problem', () => {
  const folder = configFolder({
    'tollgate.yaml': `${mainDocument}otel: { url: ${url} }\n`,
    fields: `a=${token}\n`,
  });
  const loadWith = (file: string) =>
    loadSettings({
      file: folder.file,
      env: { OTEL_EXPORTER_OTLP_HEADERS_FILE: folder.pathOf(file) },
    });
  const loaded = loadWith('fields');
  expect(loaded.kind === 'valid' && loaded.settings.otel?.headers).toEqual({ a: token });
  const failed = loadWith('gone');
  expect(failed.kind === 'invalid' && formatProblems(failed.problems)).toContain(
    'the file that OTEL_EXPORTER_OTLP_HEADERS_FILE names does not exist',
  );
});

it('no response has a header field or the path of its file, and an edit needs no restart', async () => {
  const files = { fields: `Authorization: Bearer ${token}`, 'ca.pem': makeCertificate().cert };
  const stated = `{ url: ${url}, headersFile: fields, caFile: ca.pem }`;
  const settings = settingsOf(stated, { files });
  const text = await settingsText(settings);
  expect(text).not.toContain(token);
  expect(JSON.parse(text).otel).toMatchObject({
    sample: '1 %',
    slow: '1s',
    metrics: true,
    caFile: 'ca.pem',
    caDigestStart: expect.stringMatching(/^[0-9a-f]{8}$/),
    headers: [{ name: 'authorization', valueDigestStart: expect.stringMatching(/^[0-9a-f]{8}$/) }],
  });
  const env = { OTEL_EXPORTER_OTLP_HEADERS: `authorization=${token}` };
  expect(await settingsText(settingsOf(`{ url: ${url} }`, { env }))).not.toContain(token);
  expect(restartNeeded(settings, settingsOf(`{ url: ${url} }`))).toEqual([]);
});

it('the OpenAPI document requires no masked setting that the configuration may omit', () => {
  const { otel } = described.components.schemas.Settings.properties;
  expect(otel.properties).toHaveProperty('headersFile');
  expect(otel.required).not.toContain('headersFile');
});
