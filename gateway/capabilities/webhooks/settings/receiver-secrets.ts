import type { SettingsFiles } from '../../interfaces/configuration.ts';
import { compileReceiver, type Receiver } from './receivers.ts';
import type { StatedReceiver } from './schema.ts';

/** The current secret, and during a rotation the other secret. */
const secretsMax = 2;
/** The length of a secret in octets, from Standard Webhooks. */
const [octetsMin, octetsMax] = [24, 64];

/** Compiles the receivers, with the secrets in their files. No message quotes a secret. */
export function readReceivers(stated: readonly StatedReceiver[], files: SettingsFiles): readonly Receiver[] {
  return stated.map((receiver, index) => {
    const { secretFile } = receiver;
    const text = files.read(secretFile, ['notify', index, 'secretFile']);
    if (text === undefined) return compileReceiver(receiver, []);
    const { secrets, faults } = readSecrets(text);
    for (const fault of faults) files.report(secretFile, fault);
    return compileReceiver(receiver, secrets);
  });
}

/** Something wrong in a line of a `secretFile`, which is counted from 1. */
interface LineFault {
  readonly line: number;
  readonly message: string;
}

export function readSecrets(text: string): {
  readonly secrets: readonly string[];
  readonly faults: readonly LineFault[];
} {
  // Editors and `echo` add the final line break.
  const secrets = text.replace(/(\r?\n)+$/, '').split(/\r?\n/);
  return { secrets, faults: faultsOf(secrets) };
}

function faultsOf(lines: readonly string[]): readonly LineFault[] {
  if (lines.length === 1 && lines[0] === '') return [{ line: 1, message: 'this file has no secret' }];
  if (lines.length > secretsMax) {
    const message = `this file may have at most ${secretsMax} lines: the current secret, and during a rotation the other secret`;
    return [{ line: secretsMax + 1, message }];
  }
  return lines.flatMap((line, index) => {
    const isTwice = lines.indexOf(line) < index;
    const fault = isTwice ? 'this line repeats the secret of the first line' : secretFault(line);
    return fault === undefined ? [] : [{ line: index + 1, message: fault }];
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
