import { readFileSync } from 'node:fs';
import { CommandError, unreadable } from '../../../cli/output/command-error.ts';
import type { Screen } from '../../../cli/output/screen.ts';
import { print, printJson } from '../../../cli/output/screen.ts';
import { screenNow } from '../../../cli/output/show.ts';
import { requireConfig } from '../../../cli/start/named-config.ts';
import { loadSettings } from '../../../config/load-settings.ts';
import { formatProblems } from '../../../config/problems/format-problems.ts';
import { exampleNotices, type Notice } from '../../../fleet/kinds/kinds.ts';
import { createSharedLookup } from '../../../shared/http/shared-lookup.ts';
import { oneLine } from '../../../shared/terminal/text-width.ts';
import { type Bounds, defaultBounds } from '../../../shared/timeouts-and-sizes.ts';
import { type WebhookEventType, webhookEventTypes } from '../../../shared/words/event-names.js';
import { counted, figure } from '../../../shared/words/figures.js';
import { makeEventBody } from '../events/event-body.ts';
import { newEventId } from '../queue/delivery-queue.ts';
import { postDelivery } from '../sender/post-delivery.ts';
import { settlementOf } from '../sender/retry-schedule.ts';
import { signDelivery } from '../sender/sign-delivery.ts';
import { readSecrets } from '../settings/receiver-secrets.ts';
import { urlFault } from '../settings/settings.ts';

/** The result of one example event. */
interface Tested {
  readonly type: WebhookEventType;
  /** The `webhook-id`. */
  readonly id: string;
  readonly status: number | undefined;
  /** The reason why the receiver did not accept the event; undefined after a success. */
  readonly error: string | undefined;
  readonly ms: number;
}

export interface TestOptions {
  readonly secretFile?: string;
  readonly config?: string;
  readonly json?: true;
}

/** Sends an example of each event to a receiver, and prints the results. The exit code is 1 if the receiver did not accept an event. */
export async function runReceiverTest(
  given: string,
  { secretFile, config, json }: TestOptions,
): Promise<void> {
  const url = checkUrl(given);
  const secrets = findSecrets(url, { secretFile, configFile: () => requireConfig(config) });
  const tested: Tested[] = [];
  await testReceiver({
    url,
    secrets,
    bounds: defaultBounds,
    onTested(result) {
      tested.push(result);
      if (!json) print([testedLine(result, screenNow())]);
    },
  });
  if (json) printJson(tested);
  const failed = tested.filter(({ error }) => error !== undefined).length;
  if (failed > 0) {
    process.exitCode = 1;
    console.error(`The receiver did not accept ${counted(failed, 'event')}.`);
  }
  // Open connections to the receiver would keep the process alive. `setImmediate` delays the exit until a write error of standard output
  // is reported.
  setImmediate(() => process.exit());
}

/**
 * Sends an example of each event to a receiver, as many at the same time as a gateway. Calls `onTested` with each result, in the order of the
 * types.
 */
async function testReceiver({
  url,
  secrets,
  bounds,
  onTested,
}: {
  readonly url: string;
  readonly secrets: readonly string[];
  readonly bounds: Bounds;
  readonly onTested: (tested: Tested) => void;
}): Promise<void> {
  const lookup = createSharedLookup(bounds);
  const examples = exampleNotices(Date.now());
  for (let first = 0; first < examples.length; first += bounds.webhooksPerReceiverMax) {
    const some = examples.slice(first, first + bounds.webhooksPerReceiverMax);
    const results = await Promise.all(some.map(sendExample));
    for (const tested of results) if (tested !== undefined) onTested(tested);
  }

  async function sendExample(notice: Notice) {
    const nowMs = Date.now();
    const event = makeEventBody(notice, nowMs, bounds);
    if (event === undefined) return undefined;
    const id = newEventId();
    const body = JSON.stringify(event);
    const headers = signDelivery({ id, body, secrets, nowMs });
    const startedMs = performance.now();
    const attempt = await postDelivery({ url, headers, body, lookup, bounds });
    const ms = Math.round(performance.now() - startedMs);
    const settlement = settlementOf(attempt, { attempts: 0, sinceFirstMs: 0 }, { nowMs, random: 0, bounds });
    // The attempt cannot be cancelled, because it has no signal.
    if (settlement.kind === 'returned') return undefined;
    const error = settlement.kind === 'delivered' ? undefined : settlement.error;
    return { type: event.type, id, status: settlement.status, error, ms };
  }
}

/** Makes the line about one example event: its type, the answer of the receiver, and the duration. */
function testedLine({ type, status, error, ms }: Tested, { paint }: Screen): string {
  const tone = error === undefined ? 'good' : 'bad';
  const answer = error ?? `status ${status}`;
  return `${type.padEnd(typeColumns)}  ${`${figure(ms)} ms`.padStart(9)}  ${paint(tone, oneLine(answer))}`;
}

const typeColumns = Math.max(...webhookEventTypes.map((type) => type.length));

/** @throws a CommandError if a gateway would not accept the URL. The message does not repeat the URL, because a URL may contain a token */
function checkUrl(text: string): string {
  const url = URL.parse(text);
  const fault =
    url === null ? 'must be an https URL such as https://hooks.example.com/tollgate' : urlFault(text);
  if (fault === undefined) return text;
  throw new CommandError(`The URL ${fault}.`);
}

/**
 * Returns the secrets with which a gateway signs deliveries to this URL: the secrets of the given file, or of the receiver with this URL in
 * the configuration.
 *
 * @throws a CommandError
 */
function findSecrets(
  url: string,
  { secretFile, configFile }: { readonly secretFile: string | undefined; readonly configFile: () => string },
): readonly string[] {
  return secretFile === undefined ? secretsOfReceiver(url, configFile()) : secretsOfFile(secretFile);
}

function secretsOfFile(file: string): readonly string[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw unreadable(`${file} of --secret-file`, error);
  }
  const { secrets, faults } = readSecrets(text);
  const problems = faults.map((fault) => ({ file, column: 1, excerpt: '', ...fault }));
  if (problems.length > 0) throw new CommandError(formatProblems(problems));
  return secrets;
}

function secretsOfReceiver(url: string, configFile: string): readonly string[] {
  const loaded = loadSettings({ file: configFile, env: process.env });
  if (loaded.kind === 'invalid') throw new CommandError(formatProblems(loaded.problems));
  const { href } = new URL(url);
  const receiver = loaded.settings.notify.find((one) => new URL(one.url).href === href);
  if (receiver !== undefined) return receiver.secrets;
  throw new CommandError(
    `${configFile} has no receiver with this URL: add it to \`notify\`, or give its secret with --secret-file FILE.`,
  );
}
