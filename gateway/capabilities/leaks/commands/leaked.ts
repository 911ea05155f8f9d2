import { createInterface } from 'node:readline';
import type { AdminClient } from '../../../cli/admin/admin-client.ts';
import { clientOf } from '../../../cli/admin/find-gateway.ts';
import type { Asking } from '../../../cli/command.ts';
import { refuseArguments } from '../../../cli/keys/whoami.ts';
import { CommandError } from '../../../cli/output/command-error.ts';
import type { Screen } from '../../../cli/output/screen.ts';
import { show } from '../../../cli/output/show.ts';
import { type Cell, type Column, table } from '../../../cli/output/table.ts';
import { digestSecret, digestStart } from '../../../shared/secrets.ts';
import { defaultBounds } from '../../../shared/timeouts-and-sizes.ts';
import { type JudgedSecrets, leakSecretsMax, reportLeaksWire } from '../operators/wires.ts';

export interface LeakedOptions extends Asking {
  readonly url?: string;
  readonly source?: string;
}

type JudgedLine = JudgedSecrets[number] & { readonly line: number };

/** Lines are numbered from 1. */
interface Line {
  readonly line: number;
  readonly secret: string;
}

export async function reportLeaked(args: readonly string[], options: LeakedOptions): Promise<void> {
  refuseArguments(args, howToGiveThem);
  const lines = await readLines(process.stdin);
  const judged = await report(await clientOf(options), lines, options);
  show(options, { json: judged, body: judged }, judgedLines);
}

/** @throws a CommandError if there is no secret */
async function readLines(input: NodeJS.ReadStream): Promise<readonly Line[]> {
  const lines: Line[] = [];
  if (!input.isTTY) {
    let line = 0;
    for await (const text of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
      line += 1;
      const secret = text.trim();
      if (secret.length > defaultBounds.secretInputCharsMax) {
        throw new CommandError(`Line ${line} is too long for a secret.`);
      }
      if (secret !== '') lines.push({ line, secret });
    }
  }
  if (lines.length > 0) return lines;
  throw new CommandError(`Which secrets? ${howToGiveThem}`);
}

const howToGiveThem = 'Secrets are read from standard input, one a line: tollgate keys leaked < found.txt.';

/** Sends the digests in parts. If a part fails, the whole command can be repeated. */
async function report(
  client: Pick<AdminClient, 'ask'>,
  lines: readonly Line[],
  { url, source }: LeakedOptions,
): Promise<readonly JudgedLine[]> {
  const judged: JudgedLine[] = [];
  for (let from = 0; from < lines.length; from += leakSecretsMax) {
    const part = lines.slice(from, from + leakSecretsMax);
    const body = part.map(({ secret }) => ({ sha256: digestSecret(secret), url, source }));
    const reply = await client.ask(reportLeaksWire, { body });
    reply.body.forEach((one, index) => {
      judged.push({ line: part[index]?.line ?? 0, ...one });
    });
  }
  return judged;
}

function judgedLines(judged: readonly JudgedLine[], screen: Screen): string[] {
  const columns: readonly Column<JudgedLine>[] = [
    { title: 'LINE', cell: ({ line }) => line, align: 'right' },
    { title: 'SHA-256', cell: ({ token_hash }) => `${digestStart(token_hash)}…` },
    { title: 'KEY', cell: ({ key = '–' }) => key, cutsTo: 12 },
    { title: 'SECRET', cell: outcomeOf },
  ];
  return table(columns, judged, screen);
}

function outcomeOf({ key, ended, descendants = [] }: JudgedLine): Cell {
  if (key === undefined) return { text: 'no key has it' };
  if (!ended) return { text: 'is recorded and stays valid', tone: 'bad' };
  if (descendants.length === 0) return { text: 'has ended', tone: 'good' };
  const others = descendants.map((one) => `${one}…`).join(', ');
  return { text: `has ended, with those that its holder issued from it: ${others}`, tone: 'good' };
}
