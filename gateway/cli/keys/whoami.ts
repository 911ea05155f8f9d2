import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { findSecretWire, type KnownOwner, type Owner } from '../../admin/wires/keys/directory.ts';
import { isoOfEnd } from '../../shared/schema/dates-and-durations.ts';
import { digestSecret, digestStart, hasRightChecksum } from '../../shared/secrets.ts';
import { printable } from '../../shared/terminal/printable.ts';
import { defaultBounds } from '../../shared/timeouts-and-sizes.ts';
import type { AdminClient } from '../admin/admin-client.ts';
import { clientOf } from '../admin/find-gateway.ts';
import { placeText } from '../admin/keys-view.ts';
import type { Asking } from '../command.ts';
import { CommandError } from '../output/command-error.ts';
import { instant } from '../output/figures.ts';
import type { Screen } from '../output/screen.ts';
import { show } from '../output/show.ts';
import { type Cell, factTable } from '../output/table.ts';
import { type LoadedKeys, loadKeys } from './file/edit-keys.ts';

/** The exit code is 2 if no key has the secret. */
export async function whoami(args: readonly string[], options: Asking): Promise<void> {
  refuseArguments(args);
  const secret = await readSecret(process.stdin, defaultBounds.secretInputCharsMax);
  const owner = await findOwner(secret, options);
  show(options, { json: owner, body: owner }, (body, screen) => ownerLines(body, secret, screen));
  if (!owner.known) process.exitCode = 2;
}

/**
 * Finds the owner of a secret in the configuration. If no configuration is named, a gateway finds the owner. If the configuration has a key
 * directory and the keys file does not contain the secret, a gateway also searches the key directory.
 */
async function findOwner(secret: string, options: Asking): Promise<Owner> {
  const { config } = options;
  if (config === undefined || config === '') return ownerBy(await clientOf(options), secret);
  const loaded = loadKeys({ file: config, env: process.env, makesKeysFile: true });
  const owner = ownerIn(loaded, secret, Date.now());
  if (owner.known || !loaded.settings.directory) return owner;
  try {
    return await ownerBy(await clientOf(options), secret);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    const where = loaded.file === undefined ? '' : `No key in ${loaded.file} has this secret. `;
    throw new CommandError(`${where}The key directory could not be searched: ${error.message}`);
  }
}

function ownerIn({ settings, written }: LoadedKeys, secret: string, nowMs: number): Owner {
  const found = settings.keys.find(digestSecret(secret));
  const of = found && written.find(({ key }) => key.id === found.key.id);
  if (found === undefined || of === undefined) return { known: false };
  const { key, line } = of;
  const { expiresMs } = found.secret;
  return {
    known: true,
    id: key.id,
    plan: key.plan,
    source: 'file',
    file: settings.keysFile && printable(settings.keysFile.path),
    line,
    expiresAt: isoOfEnd(expiresMs),
    isExpired: expiresMs <= nowMs,
    isDisabled: key.disabled,
  };
}

/** The request contains only the digest of the secret. @throws a CommandError */
async function ownerBy(client: Pick<AdminClient, 'ask'>, secret: string): Promise<Owner> {
  const sha256 = digestSecret(secret);
  return (await client.ask(findSecretWire, { body: { sha256 } })).body;
}

function ownerLines(found: Owner, secret: string, screen: Screen): string[] {
  if (!found.known) return [unknownText(secret)];
  const { id, plan } = found;
  const facts: readonly (readonly [string, string | Cell])[] = [
    ['plan', plan],
    ['written in', placeText(found)],
    ['secret', `${digestStart(digestSecret(secret))}… (of its SHA-256)`],
    ['expires', expiryText(found)],
    ['state', stateOf(found)],
  ];
  return factTable(id, facts, screen);
}

function expiryText({ expiresAt, isExpired }: KnownOwner): string {
  if (expiresAt !== undefined) return `${instant(expiresAt)} UTC`;
  return isExpired ? 'it was removed from its key' : 'never';
}

function stateOf({ id, source, isExpired, isDisabled, refusedFor, leak }: KnownOwner): Cell {
  if (isDisabled) return { text: 'revoked: the key is refused with all its secrets', tone: 'good' };
  if (leak?.ended) {
    const found = leak.ancestor === undefined ? 'this secret' : `its ancestor ${leak.ancestor}…`;
    return { text: `leaked: ${found} was reported by ${leak.by} and is refused`, tone: 'good' };
  }
  if (isExpired) return { text: 'expired: this secret is refused', tone: 'good' };
  if (refusedFor !== undefined) {
    return { text: `refused: ${refusals[refusedFor] ?? refusedFor}`, tone: 'good' };
  }
  const option = source === 'directory' ? ' --directory' : '';
  return { text: `valid: "keys rotate ${id} --overlap 0s${option}" ends it`, tone: 'bad' };
}

const refusals: Readonly<Record<string, string>> = {
  id_in_configuration: 'the configuration has another key with this id, which takes precedence',
  no_plan: 'the configuration gives this key no limits on its plan',
};

function unknownText(secret: string): string {
  const sentence = 'No key has this secret.';
  if (/^tga_/.test(secret))
    return `${sentence} It looks like a token of the admin API, whose digest belongs in \`admin.tokens\`.`;
  if (/^tg_/.test(secret) && !hasRightChecksum(secret)) {
    return `${sentence} It is incomplete or was changed, because its last six characters do not fit the others.`;
  }
  return sentence;
}

/**
 * Reads a secret from standard input. A secret in an argument would be visible to other users of the machine, and would stay in
 * the shell's history.
 *
 * @throws a CommandError if the input is not one line
 */
async function readSecret(input: NodeJS.ReadStream, bytesMax: number): Promise<string> {
  const text = input.isTTY ? await readHidden(input) : await readAll(input, bytesMax);
  const secret = text.trim();
  if (/^[\x21-\x7e]+$/.test(secret)) return secret;
  throw new CommandError(`Which secret? ${howToGiveIt}`);
}

/**
 * The message does not repeat a secret from an argument, because the output of a command is often stored.
 *
 * @param how a sentence about the input of the command
 */
export function refuseArguments(args: readonly string[], how = howToGiveIt): void {
  if (args.length > 0) {
    throw new CommandError(
      `Do not give a secret as an argument: other users can read it, and the shell keeps it. ${how}`,
    );
  }
}

const howToGiveIt =
  'It is read from standard input, as a single line: printf %s "$SECRET" | tollgate keys whoami.';

async function readAll(input: NodeJS.ReadStream, bytesMax: number): Promise<string> {
  let text = '';
  for await (const chunk of input.setEncoding('utf8')) {
    text += chunk;
    if (text.length > bytesMax) return '';
  }
  return text;
}

/** Reads a line from a terminal without echoing it. Returns an empty text if the input ends without a line. */
async function readHidden(input: NodeJS.ReadStream): Promise<string> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  // The option `terminal: true` stops the echo of the terminal.
  const lines = createInterface({ input, output: nowhere, terminal: true });
  process.stderr.write('The secret, then Enter (it is not shown): ');
  const line = await new Promise<string>((resolve) => {
    lines.once('line', resolve);
    lines.once('SIGINT', () => resolve(''));
    lines.once('close', () => resolve(''));
  });
  lines.close();
  process.stderr.write('\n');
  return line;
}
