import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** In the order in which they use each other. */
const chapters = [
  'hash',
  'grants',
  'windows',
  'bans',
  'unsent',
  'runs',
  'trial',
  'leases',
  'marks',
  'thresholds',
  'adjust',
  'decide-key',
]
  .map((name) => readFileSync(new URL(`../${name}.lua`, import.meta.url), 'utf8'))
  .join('\n');

/** A script that may call the functions of all chapters. @param allowOom whether Redis runs it when it is out of memory */
export function scriptWithChapters(body: string, { allowOom = false } = {}): string {
  return `${allowOom ? '#!lua flags=allow-oom\n' : ''}${chapters}\nreadClock()\n${body}`;
}

/** A library with a Redis Function that may call the functions of all chapters. `body` has the arguments `keys` and `args`. */
export function libraryWithChapters(library: string, name: string, body: string): string {
  return `#!lua name=${library}
${chapters}
redis.register_function('${name}', function(keys, args)
  readClock()
  ${body}
end)`;
}

const digest = createHash('sha256').update(chapters).digest('hex').slice(0, 16);

/**
 * Names of libraries and functions are global in Redis, so both contain a digest of the chapters. Two versions of the gateway can therefore
 * use the same server.
 */
export const decideFunction = {
  name: `tollgate_decide_${digest}`,
  library: libraryWithChapters(
    `tollgate_${digest}`,
    `tollgate_decide_${digest}`,
    'return decideKeys(keys, args)',
  ),
  /** For servers that refuse functions. */
  script: scriptWithChapters('return decideKeys(KEYS, ARGV)'),
};
