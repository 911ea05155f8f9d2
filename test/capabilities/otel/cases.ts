import type { CapabilityCases } from '../../support/capability-cases.ts';
import { makeCertificate } from '../../support/make-certificate.ts';

const url = 'http://127.0.0.1:4318';
const otel = (members: object) => ({ otel: { url, ...members } });

export const cases: CapabilityCases = {
  effective: {
    otel: { url: 'http://127.0.0.1:1', share: 0, slowMs: 1_000, metrics: false, headers: {}, resource: {} },
  },
  secretSetting: {
    name: 'otel',
    settings: otel({}),
    shownAsStated: ['otel.serviceName'],
    url: (secret) => `https://collector.example.com/${secret}`,
    secretFile: 'Authorization: Bearer a',
  },
  files: {
    fields: 'Authorization: Bearer one',
    'other-fields': 'Authorization: Bearer two',
    'collector.pem': makeCertificate().cert,
    'other-collector.pem': makeCertificate().cert,
  },
  settings: {
    'otel.url': [otel({}), otel({ url: 'http://127.0.0.1:4319' })],
    'otel.sample': [otel({}), otel({ sample: '2 %' })],
    'otel.slow': [otel({}), otel({ slow: '2s' })],
    'otel.metrics': [otel({}), otel({ metrics: false })],
    'otel.headersFile': [otel({ headersFile: 'fields' }), otel({ headersFile: 'other-fields' })],
    'otel.caFile': [otel({ caFile: 'collector.pem' }), otel({ caFile: 'other-collector.pem' })],
    'otel.serviceName': [otel({}), otel({ serviceName: 'edge' })],
  },
};
