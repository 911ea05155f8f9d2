import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A key of the benchmark with its secret. */
export interface Credential {
  readonly id: string;
  readonly secret: string;
  readonly sha256: string;
  readonly limits: Limits;
}

/** The keys of the scenarios. For each set of keys, a file contains the secrets for wrk. */
export interface Credentials {
  readonly all: readonly Credential[];
  readonly hotFile: string;
  readonly manyFile: string;
  readonly floodFile: string;
  readonly flood: Credential;
}

/** Limits for the configurations of all subjects. */
interface Limits {
  readonly perMinute: number;
  readonly perDay: number;
}

/** No run reaches this limit, so every request is admitted. */
const unlimited: Limits = { perMinute: 1_000_000_000, perDay: 1_000_000_000_000 };
/** The first request uses up this limit until the end of the UTC day, so every further request is refused. */
const single: Limits = { perMinute: 1, perDay: 1 };

/** Creates `count` keys whose limit no run reaches, and one key for the flood. The first of the `count` keys is the hot key. */
export function makeCredentials(count: number, dir: string): Credentials {
  const many = Array.from({ length: count }, (_, index) => makeCredential(`bench-${index}`, unlimited));
  const flood = makeCredential('bench-flood', single);
  const write = (name: string, credentials: readonly Credential[]) => {
    const file = join(dir, name);
    writeFileSync(file, credentials.map(({ secret }) => `${secret}\n`).join(''));
    return file;
  };
  return {
    all: [...many, flood],
    hotFile: write('hot.secrets', many.slice(0, 1)),
    manyFile: write('many.secrets', many.slice(0, 1_000)),
    floodFile: write('flood.secrets', [flood]),
    flood,
  };
}

/**
 * The secret is derived from the id. The secret has the length of a real secret. It has another prefix than secrets of Tollgate, because a
 * gateway refuses a secret with this prefix and without its checksum before it looks the secret up.
 */
function makeCredential(id: string, limits: Limits): Credential {
  const secret = `benchkey_${sha256Hex(`secret of ${id}`).slice(0, 40)}`;
  return { id, secret, sha256: sha256Hex(secret), limits };
}

function sha256Hex(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
