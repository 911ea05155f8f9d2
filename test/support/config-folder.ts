import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';

export const apiDocument = `openapi: 3.1.0
info: { title: Test, version: 1.0.0 }
paths:
  /pets:
    get: { operationId: listPets }
    post: { operationId: createPet }
  /pets/{petId}:
    get:
      operationId: getPet
      deprecated: true
      x-deprecated-since: 2026-11-20
      x-deprecated-sunset: 2030-12-05
      x-deprecated-successor: listPets
`;

export const mainDocument = `environment: test
baseUrl: https://api.example.com/v1
upstream: { url: http://backend:3000 }
plans:
  free: { perMinute: 60, perDay: 1000 }
  enterprise: custom
keys: keys.yaml
api: openapi.yaml
`;

/** The line of a configuration whose other settings need Redis. No test connects to this server. */
export const redisLine = 'redis: { url: redis://redis:6379 }\n';

/** A digest of 64 equal hex digits, which belongs to no real secret. */
export function digestOf(hexDigit: string): string {
  return hexDigit.repeat(64);
}

export const keysDocument = `# The keys.
- id: acme
  plan: free
  secrets:
    - sha256: ${digestOf('a')}
`;

export interface ConfigFolder {
  /** The main file. */
  readonly file: string;
  pathOf(name: string): string;
  write(name: string, text: string | Uint8Array): void;
}

/**
 * Creates a folder with a small valid configuration. `files` replaces files of the folder, or adds files. The folder is deleted after the
 * test.
 */
export function configFolder(files: Readonly<Record<string, string | Uint8Array>> = {}): ConfigFolder {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-config-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const pathOf = (name: string) => `${folder}/${name}`;
  const write = (name: string, text: string | Uint8Array) => {
    mkdirSync(dirname(pathOf(name)), { recursive: true });
    writeFileSync(pathOf(name), text);
  };
  const documents = {
    'tollgate.yaml': mainDocument,
    'keys.yaml': keysDocument,
    'openapi.yaml': apiDocument,
    ...files,
  };
  for (const [name, text] of Object.entries(documents)) write(name, text);
  return { file: pathOf('tollgate.yaml'), pathOf, write };
}
