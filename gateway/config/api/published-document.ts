import { limitsText } from '../../keys/limits/limit-texts.ts';
import { changesAfter, limitsAt } from '../../keys/plans/plans.ts';
import { rest } from '../../shared/http/path-template.ts';
import { groupNames, limitsOfGroup, maxOf, operationsOf } from '../../shared/limits.ts';
import { type Limits, type Plan, type Plans, planWindows } from '../../shared/model.ts';
import { isoOf } from '../../shared/schema/dates-and-durations.ts';
import { isMapping, type Mapping } from '../../shared/structures/plain-data.ts';
import { configSizes } from '../config-sizes.ts';
import type { ApiFile, ApiPart, References, Target } from './follow-references.ts';

interface Published {
  readonly baseUrl: string;
  readonly plans: Plans;
  /** See `countedBy`. */
  readonly counted: 'request' | 'unit';
  /** Epoch ms, when the settings are loaded. */
  readonly nowMs: number;
  readonly sentences: readonly string[];
}

/**
 * The API document for clients. Its server is the base URL, and its description ends with the limits of each plan. It includes the files
 * that `$ref` refers to. It omits `x-upstream`, because names of upstreams are internal, and keeps every other `x-` field.
 *
 * @returns undefined when the JSON is longer than `configSizes.publishedCharsMax`; aliases can make it far larger than the file
 */
export function apiDocument(document: References, published: Published): string | undefined {
  const { value } = document.root.source;
  const { publishedCharsMax } = configSizes;
  if (charsOf(value, publishedCharsMax) > publishedCharsMax || !isMapping(value)) return undefined;
  const info = isMapping(value.info) ? value.info : {};
  const description = [info.description, plansText(published)].filter((text) => typeof text === 'string');
  const bundled = bundle(document);
  return (
    bundled &&
    JSON.stringify({
      ...bundled,
      info: { ...info, description: description.join('\n\n') },
      servers: [{ url: published.baseUrl.replace(/\/$/, '') }],
    })
  );
}

/** Contains the other files of the document, each under its number. */
const filesMember = 'x-files';

/**
 * The other files become members of `x-files`, and each `$ref` to a file then refers to its member. A `$ref` of a path item or an operation
 * is replaced by its target.
 */
function bundle(references: References): Mapping | undefined {
  const { root } = references;
  const numbers = new Map<ApiFile, number>([[root, 0]]);
  const numberOf = (file: ApiFile): number => {
    const number = numbers.get(file) ?? numbers.size;
    numbers.set(file, number);
    return number;
  };

  function leadTo({ in: file, pointer }: Target): string {
    const number = numberOf(file);
    return `#${number === 0 ? '' : `/${filesMember}/${number}`}${encodeURI(pointer)}`;
  }

  /** The path to the value that is being rewritten, for a problem with a missing file. */
  const path: string[] = [];

  function rewrite(value: unknown, file: ApiFile): unknown {
    if (Array.isArray(value)) return mapEntries(value, (entry) => rewrite(entry, file));
    if (!isMapping(value)) return value;
    return mapMembers(value, (member, name) => {
      if (name === '$ref' && typeof member === 'string') return rewriteReference(member, file);
      path.push(name);
      const rewritten = rewrite(member, file);
      path.pop();
      return rewritten;
    });
  }

  function rewriteReference(reference: string, file: ApiFile): string {
    if (file === root && reference.startsWith('#')) return reference;
    const target = references.locate(reference, { in: file, path: [...path], value: undefined });
    return target ? leadTo(target) : reference;
  }

  function inPlace(part: ApiPart): ApiPart {
    return isMapping(part.value) && part.value.$ref !== undefined
      ? inPlace(references.follow(part) ?? { ...part, value: {} })
      : part;
  }

  function operationOf(value: unknown, file: ApiFile): unknown {
    const { in: from, value: operation } = inPlace({ in: file, path: [], value });
    if (!isMapping(operation)) return rewrite(operation, from);
    if (operation['x-upstream'] === undefined) return rewrite(operation, from);
    const { 'x-upstream': _, ...rest } = operation;
    return rewrite(rest, from);
  }

  function pathItemOf(value: unknown, file: ApiFile): unknown {
    if (!isMapping(value)) return value;
    if (value.$ref === undefined) return mapMembers(value, (member) => operationOf(member, file));
    const { $ref: _, ...own } = value;
    const referred = inPlace({ in: file, path: [], value });
    const inherited = pathItemOf(referred.value, referred.in);
    return {
      ...(isMapping(inherited) && inherited),
      ...asMapping(mapMembers(own, (member) => operationOf(member, file))),
    };
  }

  const value = asMapping(root.source.value);
  const paths = withPlainRests(asMapping(mapMembers(value.paths, (item) => pathItemOf(item, root))));
  const components = mapMembers(value.components, (member, name) =>
    name === 'pathItems' ? mapMembers(member, (item) => pathItemOf(item, root)) : member,
  );
  const rest = components === undefined ? value : { ...value, components };
  const joined: Record<string, unknown> = { ...asMapping(rewrite({ ...rest, paths: {} }, root)), paths };
  const files: Record<string, unknown> = {};
  let chars = 0;
  // `rewrite` may add further files to `numbers`.
  for (const [file, number] of numbers) {
    if (number === 0) continue;
    chars += charsOf(file.source.value, configSizes.publishedCharsMax);
    if (chars > configSizes.publishedCharsMax) return undefined;
    files[number] = rewrite(withoutUpstreams(file.source.value), file);
  }
  return numbers.size === 1 ? joined : { ...joined, [filesMember]: files };
}

/**
 * Writes the parameters `{name+}` and `{+name}` as `{name}`, because OpenAPI has no parameter that matches the rest of a path, and clients
 * look for the exact name between the braces. A path keeps its name if the document also has the plain path.
 */
function withPlainRests(paths: Mapping): Mapping {
  const entries = Object.entries(paths).map(([template, item]) => {
    const plain = template.replace(rest, (parameter) => parameter.replace('+', ''));
    return [Object.hasOwn(paths, plain) ? template : plain, item];
  });
  return Object.fromEntries(entries);
}

/** At any depth. */
function withoutUpstreams(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutUpstreams);
  if (!isMapping(value)) return value;
  const { 'x-upstream': _, ...rest } = value;
  return mapMembers(rest, withoutUpstreams);
}

function asMapping(value: unknown): Mapping {
  return isMapping(value) ? value : {};
}

/** Returns the mapping itself if no member changes, because most parts of a document stay unchanged. */
function mapMembers(value: unknown, map: (member: unknown, name: string) => unknown): unknown {
  if (!isMapping(value)) return value;
  let changed: Record<string, unknown> | undefined;
  for (const [name, member] of Object.entries(value)) {
    const mapped = map(member, name);
    if (mapped === member) continue;
    changed ??= { ...value };
    changed[name] = mapped;
  }
  return changed ?? value;
}

/** Returns the list itself if no entry changes. */
function mapEntries(value: readonly unknown[], map: (entry: unknown) => unknown): readonly unknown[] {
  const mapped = value.map(map);
  return mapped.every((entry, index) => entry === value[index]) ? value : mapped;
}

/** An estimate, which stops soon after it exceeds the maximum. */
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

/** A Markdown table with a row for each plan and each scheduled change, and a column for each window that a plan limits. */
function plansText({ plans, counted, sentences, nowMs }: Published): string {
  const all = [...plans.values()];
  const limited = all.flatMap((plan) => periodsOf(plan, nowMs));
  const windows = planWindows.filter((window) =>
    limited.some(({ limits }) => maxOf(limits, { window, group: undefined }) !== undefined),
  );
  const isScoped = all.some(({ operations }) => operations !== undefined);
  const isConcurrent = all.some(({ concurrent }) => concurrent !== undefined);
  const rows = [
    [
      'Plan',
      ...windows.map((window) => `${counted === 'unit' ? 'Units' : 'Requests'} per ${window}`),
      ...(isConcurrent ? ['Requests in progress'] : []),
      ...(isScoped ? ['Operations'] : []),
    ],
    ['---', ...windows.map(() => '---:'), ...(isConcurrent ? ['---:'] : []), ...(isScoped ? ['---'] : [])],
    ...all.flatMap((plan) =>
      periodsOf(plan, nowMs).map(({ title, limits }) => [
        title,
        ...windows.map(
          (window) => maxOf(limits, { window, group: undefined })?.toLocaleString('en') ?? noMax(plan),
        ),
        ...(isConcurrent ? [plan.concurrent?.toLocaleString('en') ?? 'unlimited'] : []),
        ...(isScoped ? [scopeOf(plan)] : []),
      ]),
    ),
  ];
  const table = rows.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
  const costs =
    counted === 'unit'
      ? '\n\nA request costs 1 unit. The `x-cost` of an operation states another cost, and its responses carry it in `X-RateLimit-Cost`.'
      : '';
  return `## Plans\n\n${table}${groupsText(all, nowMs)}${costs}${sentences.map((one) => `\n\n${one}`).join('')}`;
}

/** A list of the groups that have limits of their own, or an empty text. */
function groupsText(plans: readonly Plan[], nowMs: number): string {
  const lines = plans.flatMap((plan) =>
    periodsOf(plan, nowMs).flatMap(({ title, limits }) =>
      groupNames(limits).map((group) => {
        const names = operationsOf(limits, group)
          ?.map((id) => `\`${id}\``)
          .join(', ');
        const maxima = limitsText(limitsOfGroup(limits, group).map(({ window, max }) => ({ window, max })));
        return `- ${title}, group \`${group}\` (${names}): ${maxima}`;
      }),
    ),
  );
  if (lines.length === 0) return '';
  return `\n\nRequests of some operations also count in limits of their group:\n\n${lines.join('\n')}`;
}

/**
 * The present limits of a plan, and its limits after each later change. A row states its period, so that the document stays correct when a
 * change takes effect.
 */
function periodsOf(
  plan: Plan,
  nowMs: number,
): readonly { readonly title: string; readonly limits: Limits }[] {
  const { name } = plan;
  const later = changesAfter(plan, nowMs);
  const untilText = ([next]: typeof later) =>
    next === undefined ? '' : ` until ${instantText(next.fromMs)}`;
  const now = {
    title: later.length === 0 ? name : `${name},${untilText(later)}`,
    limits: limitsAt(plan, nowMs),
  };
  return [
    now,
    ...later.map(({ fromMs, limits }, index) => {
      return { title: `${name}, from ${instantText(fromMs)}${untilText(later.slice(index + 1))}`, limits };
    }),
  ];
}

/** "2027-01-01", or "2027-01-01 12:00 UTC" */
function instantText(epochMs: number): string {
  const [date = '', time = ''] = isoOf(epochMs).split('T');
  return time === '00:00:00.000Z'
    ? date
    : `${date} ${time.slice(0, time.slice(6) === '00.000Z' ? 5 : 8)} UTC`;
}

function noMax({ isCustom }: Plan): string {
  return isCustom ? 'custom' : 'unlimited';
}

function scopeOf({ operations }: Plan): string {
  return operations === undefined ? 'all' : operations.map((id) => `\`${id}\``).join(', ');
}
