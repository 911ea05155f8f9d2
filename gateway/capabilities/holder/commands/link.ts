import { isIP } from 'node:net';
import type { AdminClient } from '../../../cli/admin/admin-client.ts';
import { clientOf } from '../../../cli/admin/find-gateway.ts';
import { changeKey, ofKey } from '../../../cli/admin/read/read-key.ts';
import type { Asking } from '../../../cli/command.ts';
import { CommandError } from '../../../cli/output/command-error.ts';
import { show } from '../../../cli/output/show.ts';
import { printable } from '../../../shared/terminal/printable.ts';
import { counted } from '../../../shared/words/figures.js';
import {
  type LinksOfKeyShown,
  linkKeyWire,
  listLinksWire,
  unlinkAllWire,
  unlinkKeyWire,
} from '../links/wires.ts';
import { linkText, minuteText } from './link-facts.ts';

export interface LinkOptions extends Asking {
  readonly for?: string;
  readonly list?: true;
}

export interface UnlinkOptions extends Asking {
  readonly all?: true;
}

/** Makes a link to the page of a key, or lists the links of the key. */
export async function linkKey(id: string, { for: length, list, ...options }: LinkOptions): Promise<void> {
  if (list) {
    const client = await clientOf(options);
    const reply = await ofKey(client, id, () => client.ask(listLinksWire, { params: { id } }));
    return show(options, reply, linksLines);
  }
  if (length === undefined) throw new CommandError('How long? Give --for, such as --for 7d, or --list.');
  const client = await clientOf(options);
  const reply = await changeKey(id, () => client.ask(linkKeyWire, { params: { id }, body: { for: length } }));
  // Only the link is on standard output, so that `LINK=$(… keys link …)` works.
  show(options, reply, ({ url }) => [url]);
  const { digestStart, untilAt } = reply.body.link;
  const about = `The link opens the page of ${id} until ${minuteText(untilAt)}, for everyone who has it. It is shown only now. "keys unlink ${id} ${digestStart}" ends it.`;
  if (!options.json) console.error(printable(about));
  const { hostname } = new URL(reply.body.url);
  if (isOwnHost(hostname)) {
    console.error(
      `warning: the link begins with ${hostname}, which names the reader's own machine: set \`baseUrl\` to the public address of the API`,
    );
  }
}

/** Ends a link of a key, or all. */
export async function unlinkKey(
  id: string,
  digest: string | undefined,
  { all, ...options }: UnlinkOptions,
): Promise<void> {
  if ((digest === undefined) === (all === undefined)) {
    throw new CommandError(
      `Which link? Give the first digits of its digest, or --all. "keys link ${id} --list" lists them.`,
    );
  }
  const client = await clientOf(options);
  show(options, await end(client, id, digest), ({ ended = [], ...rest }) => [
    ended.length === 0
      ? `${id} has no links.`
      : `${counted(ended.length, 'link')} of ${id} ended: ${ended.join(', ')}.`,
    ...(ended.length > 0 && rest.links.length > 0 ? linksLines(rest) : []),
  ]);
}

async function end(client: Pick<AdminClient, 'ask'>, id: string, digest: string | undefined) {
  if (digest === undefined) return changeKey(id, () => client.ask(unlinkAllWire, { params: { id } }));
  const { body } = await changeKey(id, () => client.ask(listLinksWire, { params: { id } }));
  const start = digest.toLowerCase().slice(0, 8);
  if (!body.links.some(({ digestStart }) => digestStart.startsWith(start))) {
    throw new CommandError(
      printable(`${id} has no link ${digest}: "keys link ${id} --list" lists its links.`),
    );
  }
  return client.ask(unlinkKeyWire, { params: { id, digest } });
}

function linksLines({ id, links }: LinksOfKeyShown): readonly string[] {
  if (links.length === 0) return [`${id} has no links.`];
  return [
    `${counted(links.length, 'link')} ${links.length === 1 ? 'opens' : 'open'} the page of ${id}:`,
    ...links.map((link) => `  ${linkText(link)}`),
  ];
}

/** Whether each machine means itself by the name. */
function isOwnHost(hostname: string): boolean {
  const address = hostname.replace(/^\[(.*)\]$/, '$1');
  return (
    /^localhost$|\.localhost$/.test(address) ||
    (isIP(address) !== 0 && /^(127\.|::1$|0\.0\.0\.0$|::$)/.test(address))
  );
}
