import type { CapabilityCases } from '../../support/capability-cases.ts';

const sunset = {
  operationId: 'old',
  deprecated: true,
  'x-deprecated-since': '2026-11-20',
  'x-deprecated-sunset': '2030-12-05',
};

export const cases: CapabilityCases = {
  operations: {
    'x-brownouts': [sunset, { ...sunset, 'x-brownouts': [{ from: '2030-11-05', every: '1h', for: '5m' }] }],
  },
};
