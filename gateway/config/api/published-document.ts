import { type Plan, type Plans, planWindows } from '../../shared/model.ts';
import { configSizes } from '../config-sizes.ts';
import { isMapping, type Mapping } from '../source/yaml-to-plain.ts';

/** The information that the published document adds to the operator's API document. */
interface Published {
  readonly baseUrl: string;
  readonly plans: Plans;
  /** The path where a client reads its limits, if there is one. */
  readonly limitsPath: string | undefined;
}

/**
 * Makes the JSON of the API document for clients. Its server is the base URL, and its description ends with the limits of each
 * plan. `x-upstream` is left out, because names of upstreams are internal. Every other `x-` field is kept.
 *
 * @returns undefined when the JSON is longer than `configSizes.publishedCharsMax`; aliases can make it far larger than the file
 */
export function apiDocument(document: Mapping, published: Published): string | undefined {
  const { publishedCharsMax } = configSizes;
  if (charsOf(document, publishedCharsMax) > publishedCharsMax) return undefined;
  const info = isMapping(document.info) ? document.info : {};
  const description = [info.description, plansText(published)].filter((text) => typeof text === 'string');
  return JSON.stringify({
    ...document,
    info: { ...info, description: description.join('\n\n') },
    servers: [{ url: published.baseUrl.replace(/\/$/, '') }],
    paths: mapMembers(document.paths, (item) => mapMembers(item, withoutUpstream)),
  });
}

function withoutUpstream(operation: unknown): unknown {
  if (!isMapping(operation)) return operation;
  const { 'x-upstream': _, ...rest } = operation;
  return rest;
}

function mapMembers(value: unknown, map: (member: unknown) => unknown): unknown {
  if (!isMapping(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, map(member)]));
}

/** Estimates the length of the JSON. The count stops soon after the maximum. */
function charsOf(value: unknown, charsMax: number): number {
  let chars = 0;
  const count = (part: unknown): void => {
    chars += typeof part === 'string' ? part.length + 3 : 8;
    if (chars > charsMax || typeof part !== 'object' || part === null) return;
    for (const [name, member] of Object.entries(part)) {
      if (chars > charsMax) return;
      chars += name.length;
      count(member);
    }
  };
  count(value);
  return chars;
}

/** A Markdown section with a row for each plan, and a column for each window that some plan limits. */
function plansText({ baseUrl, plans, limitsPath }: Published): string {
  const all = [...plans.values()];
  const windows = planWindows.filter((window) => all.some((plan) => maxOf(plan, window) !== undefined));
  const isScoped = all.some(({ operations }) => operations !== undefined);
  const rows = [
    ['Plan', ...windows.map((window) => `Requests per ${window}`), ...(isScoped ? ['Operations'] : [])],
    ['---', ...windows.map(() => '---:'), ...(isScoped ? ['---'] : [])],
    ...all.map((plan) => [
      plan.name,
      ...windows.map((window) => maxOf(plan, window)?.toLocaleString('en') ?? noMax(plan)),
      ...(isScoped ? [scopeOf(plan)] : []),
    ]),
  ];
  const table = rows.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
  const limits =
    limitsPath === undefined
      ? ''
      : `\n\n\`GET ${new URL(baseUrl).origin}${limitsPath}\` tells a key where it stands, and is not charged.`;
  return `## Plans\n\n${table}${limits}`;
}

function maxOf({ limits }: Plan, window: string): number | undefined {
  return limits.find((limit) => limit.window === window)?.max;
}

function noMax({ isCustom }: Plan): string {
  return isCustom ? 'custom' : 'unlimited';
}

function scopeOf({ operations }: Plan): string {
  return operations === undefined ? 'all' : operations.map((id) => `\`${id}\``).join(', ');
}
