import { compileReceiver } from '../../../notify/notify-schema.ts';
import type { Receiver } from '../../../shared/model.ts';
import type { Problem } from '../../problems/problem.ts';
import type { RawSettings } from '../../schema/settings-schema.ts';
import type { LoadContext } from '../source-reader.ts';

/** The current secret, and during a rotation the other secret. */
const secretsMax = 2;
/** The length of a secret in octets, from Standard Webhooks. */
const [octetsMin, octetsMax] = [24, 64];

/** Reads the secrets of the receivers. No message quotes a secret. */
export function readReceivers(
  { notify }: RawSettings,
  { main, reader, fileOf, problems }: LoadContext,
): readonly Receiver[] {
  return notify.map((stated, index) => {
    const file = fileOf(stated.secretFile);
    const text = reader.readText({ file, main, path: ['notify', index, 'secretFile'] });
    if (text === undefined) return compileReceiver(stated, []);
    const read = readSecrets(text, file);
    problems.push(...read.problems);
    return compileReceiver(stated, read.secrets);
  });
}

/** Reads the secrets in the text of a `secretFile`. @param file the path of the file, for the problems */
export function readSecrets(
  text: string,
  file: string,
): { readonly secrets: readonly string[]; readonly problems: readonly Problem[] } {
  // Editors and `echo` add the final line break.
  const secrets = text.replace(/(\r?\n)+$/, '').split(/\r?\n/);
  return { secrets, problems: faultsOf(secrets, file) };
}

function faultsOf(lines: readonly string[], file: string): readonly Problem[] {
  const problem = (line: number, message: string) => ({ file, line, column: 1, excerpt: '', message });
  if (lines.length === 1 && lines[0] === '') return [problem(1, 'this file has no secret')];
  if (lines.length > secretsMax) {
    const message = `this file may have at most ${secretsMax} lines: the current secret, and during a rotation the other secret`;
    return [problem(secretsMax + 1, message)];
  }
  return lines.flatMap((line, index) => {
    const isTwice = lines.indexOf(line) < index;
    const fault = isTwice ? 'this line repeats the secret of the first line' : secretFault(line);
    return fault === undefined ? [] : [problem(index + 1, fault)];
  });
}

function secretFault(line: string): string | undefined {
  const wanted = `write \`whsec_\` and the base64 of ${octetsMin} to ${octetsMax} random octets, for example: echo "whsec_$(openssl rand -base64 32)"`;
  if (!line.startsWith('whsec_')) return `this line has no secret of a webhook; ${wanted}`;
  const base64 = line.slice('whsec_'.length);
  const octets = Buffer.from(base64, 'base64');
  // Node ignores characters that are not base64, but the libraries of receivers do not.
  if (octets.toString('base64') !== base64)
    return `the text after \`whsec_\` is not base64 with padding; ${wanted}`;
  return octets.length >= octetsMin && octets.length <= octetsMax
    ? undefined
    : `this secret has ${octets.length} octets; ${wanted}`;
}
