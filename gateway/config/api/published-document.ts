import { type Plan, type Plans, planWindows } from '../../shared/model.ts';
import { configSizes } from '../config-sizes.ts';
import { isMapping, type Mapping } from '../source/yaml-to-plain.ts';

/** What the document that clients read says beside the operator's own. */
interface Published {
  readonly baseUrl: string;
  readonly plans: Plans;
  /** Where a key reads its limits, if anywhere. */
  readonly limitsPath: string | undefined;
}

/**
 * The API document as JSON, as clients may read it: its server is the base URL, and its description ends with what each plan
 * allows. `x-upstream` is left out, since the names of upstreams are the operator's own; every other `x-` field is kept.
 *
 * @returns undefined when it would be longer than `configSizes.publishedCharsMax`: aliases may make it far larger than its file
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

/** About as many characters as the JSON has; the count ends soon after the maximum. */
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

/** A Markdown section: a row for each plan, a column for each window that any of them limits. */
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
