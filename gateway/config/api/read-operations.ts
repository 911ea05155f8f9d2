import { hash } from 'node:crypto';
import { basename } from 'node:path';
import { deprecationMembers } from '../../capabilities/lists/configuration.ts';
import type { Method, Operation } from '../../shared/model.ts';
import { adviceOnName, closestName, didYouMean } from '../../shared/schema/closest-name.ts';
import { shapeFaults } from '../../shared/schema/schema-faults.ts';
import { isMapping } from '../../shared/structures/plain-data.ts';
import { configSizes } from '../config-sizes.ts';
import type { Place, Problem } from '../problems/problem.ts';
import { createProblemList, type ProblemList } from '../problems/problem-list.ts';
import { faultMessage } from '../schema/shape-problems.ts';
import type { YamlSource } from '../source/parse-yaml.ts';
import { overlaps, parameterFault, templateFault } from './check-path-templates.ts';
import { type ApiFile, type ApiPart, createReferences, type References } from './follow-references.ts';
import {
  compileOperation,
  deprecationNames,
  extensionNames,
  operationSchema,
  type StatedOperation,
} from './operation-schema.ts';

export interface ReadOperations {
  readonly operations: readonly Operation[];
  readonly problems: readonly Problem[];
  /** Sentences with positions about parts that are valid but probably mistakes. */
  readonly warnings: readonly string[];
  readonly references: References;
}

interface ReadOptions {
  /** Other files are relative to this path. */
  readonly file: string;
  /** In the order of the configuration; the first is the default. Undefined if the upstreams could not be read. */
  readonly upstreamNames: readonly string[] | undefined;
  /** Reports the reason itself and returns undefined for a file that it cannot read. */
  readonly open: (file: string, mentionedAt: Place) => YamlSource | undefined;
  readonly pathsMax?: number;
}

export function readOperations(
  source: YamlSource,
  { file, upstreamNames, open, pathsMax = configSizes.pathsMax }: ReadOptions,
): ReadOperations {
  const list = createProblemList();
  const { problems } = list;
  const warned = createProblemList();
  const root: ApiFile = { file, source };
  let isUnread = false;
  const openOrNote: ReadOptions['open'] = (...file) => {
    const opened = open(...file);
    isUnread ||= opened === undefined;
    return opened;
  };
  const references = createReferences({ root, open: openOrNote, report: list.add });
  const context: ReadContext = { list, warned, references, upstreamNames };
  const result = (operations: readonly Operation[]): ReadOperations => {
    const warnings = warned.problems.map((at) => `${at.file}:${at.line}:${at.column}: ${at.message}`);
    return { operations, problems, warnings: warnings.slice(0, configSizes.problemsMax), references };
  };

  const document = isMapping(source.value) ? source.value : {};
  if (document.swagger !== undefined) {
    list.add(() => ({ ...source.placeOf(['swagger'], 'name'), message: swaggerAdvice(file) }));
    return result([]);
  }
  const { paths } = document;
  if (!isMapping(paths)) {
    // Without an excerpt, because the first line may be a secret if `api` names the keys file by mistake.
    const message = 'an OpenAPI document needs `paths`, a mapping of path templates';
    list.add(() => ({ ...source.placeOf(['paths']), excerpt: '', message }));
    return result([]);
  }
  const templates = Object.keys(paths).filter((template) => !template.startsWith('x-'));
  const atName = (template: string) => source.placeOf(['paths', template], 'name');
  const excess = templates[pathsMax];
  if (excess !== undefined) {
    const message = `\`paths\` may hold at most ${pathsMax} path templates`;
    list.add(() => ({ ...atName(excess), message }));
    return result([]);
  }
  /** Warns once of all templates with the same fault. */
  const warnOf = (faultOf: (template: string) => string | undefined, consequence = '') => {
    for (const [fault, withFault] of Map.groupBy(templates, faultOf)) {
      const [first = ''] = withFault;
      const others = likeOthers(withFault);
      const message = `\`${first}\`${others}${others && consequence && ','}${consequence}: ${fault}`;
      if (fault !== undefined) warned.add(() => ({ ...atName(first), message }));
    }
  };
  warnOf(templateFault, ' is not served, because no request can have this path');
  warnOf(parameterFault);
  const sound = templates.filter((template) => templateFault(template) === undefined);
  for (const { winner, other, isSameShape } of overlaps(sound)) {
    if (warned.isFull()) break;
    const requests = isSameShape ? 'a method that both have' : 'every request for such a path';
    const message = `\`${winner}\` and \`${other}\` match the same path; ${requests} goes to \`${winner}\``;
    warned.add(() => ({ ...atName(other), message }));
  }
  const found: FoundOperation[] = [];
  for (const template of sound) {
    if (list.isFull()) return result([]);
    const item = { in: root, path: ['paths', template], value: paths[template] };
    found.push(...readPathItem(template, item, context));
  }
  if (found.length === 0 && problems.length === 0 && !isUnread) {
    const what = sound.length === templates.length ? 'no operation' : 'no operation that a request can match';
    const message = `\`paths\` has ${what}; the gateway would answer 404 to everything`;
    list.add(() => ({ ...source.placeOf(['paths'], 'name'), message }));
  }
  return result(compileAll(found, context));
}

function swaggerAdvice(file: string): string {
  const name = basename(file);
  const command = `npx swagger2openapi ${name} --outfile openapi.json`;
  return `this is Swagger 2.0; the gateway reads OpenAPI 3.0 to 3.2. Convert it: \`${command}\``;
}

interface ReadContext {
  readonly list: ProblemList;
  readonly warned: ProblemList;
  readonly references: References;
  readonly upstreamNames: readonly string[] | undefined;
}

/** A valid operation that has no name and no successor yet. */
interface FoundOperation {
  readonly part: ApiPart;
  readonly method: Method;
  readonly template: string;
  readonly upstream: string;
  readonly stated: StatedOperation;
  readonly writtenId: string | undefined;
}

const methods: ReadonlyMap<string, Method> = new Map(
  (['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY'] as const).map((method) => [
    method.toLowerCase(),
    method,
  ]),
);

/** Operations of a path item that the gateway does not serve (OpenAPI 3.2 §4.9). */
const unserved = new Set(['trace', 'additionalOperations']);

/** A path item's fields that are not operations (OpenAPI 3.1 §4.8.9). */
const pathItemFields = new Set(['$ref', 'summary', 'description', 'parameters', 'servers']);

/** A path item may have a `$ref` and operations of its own, which replace the referenced operations of the same methods. */
function readPathItem(template: string, item: ApiPart, context: ReadContext): FoundOperation[] {
  const { value } = item;
  if (!isMapping(value)) {
    report(context.list, item, `\`${template}\` must be a mapping of methods to operations`);
    return [];
  }
  const own = Object.entries(value).flatMap(([name, member]) => {
    const part = { in: item.in, path: [...item.path, name], value: member };
    if (extensionNames.includes(name)) {
      report(
        context.list,
        part,
        `\`${name}\` belongs to an operation; write it under a method of this path`,
        'name',
      );
    }
    if (pathItemFields.has(name) || name.startsWith('x-')) return [];
    const method = methods.get(name);
    if (method !== undefined) return readOperation({ method, template, part, ...context });
    if (unserved.has(name)) {
      report(
        context.warned,
        part,
        `the gateway does not serve \`${name}\`; such a request gets 501 or 405`,
        'name',
      );
    } else {
      const meant = didYouMean(name, methods.keys()) || `; supported are: ${[...methods.keys()].join(', ')}`;
      report(context.list, part, `\`${name}\` is no method that the gateway supports${meant}`, 'name');
    }
    return [];
  });
  const referred = value.$ref === undefined ? undefined : context.references.follow(item);
  if (referred === undefined) return own;
  const replaced = new Set(own.map(({ method }) => method));
  return [...own, ...readPathItem(template, referred, context).filter(({ method }) => !replaced.has(method))];
}

function report(list: ProblemList, { in: { source }, path }: ApiPart, message: string, part?: 'name'): void {
  list.add(() => ({ ...source.placeOf(path, part), message }));
}

interface OperationSource extends ReadContext {
  readonly method: Method;
  readonly template: string;
  readonly part: ApiPart;
}

function readOperation(source: OperationSource): FoundOperation[] {
  const { method, template, list, references } = source;
  let { part } = source;
  while (isMapping(part.value) && part.value.$ref !== undefined) {
    const beside = Object.keys(part.value).find((name) => extensionNames.includes(name));
    if (beside !== undefined) {
      report(
        list,
        memberOf(part, beside),
        `\`${beside}\` beside \`$ref\` has no effect; move it to where \`$ref\` leads`,
        'name',
      );
    }
    const next = references.follow(part);
    if (next === undefined) return [];
    part = next;
  }
  const { value } = part;
  if (!isMapping(value)) {
    report(list, part, `\`${method.toLowerCase()}\` must be a mapping that describes the operation`);
    return [];
  }
  const at: OperationPart = { ...source, part, value };
  checkExtensionNames(at);
  const stated = readMembers(at);
  if (stated['x-upgrade'] !== undefined && method !== 'GET') {
    reportMember(at, 'x-upgrade', 'only a GET can be upgraded to a WebSocket (RFC 6455 §4.1)', 'name');
  }
  checkDeprecation(at, stated);
  const upstream = readUpstream(at);
  const writtenId = typeof value.operationId === 'string' ? value.operationId : undefined;
  return [{ part, method, template, upstream, stated, writtenId }];
}

interface OperationPart extends OperationSource {
  readonly value: Readonly<Record<string, unknown>>;
}

function memberOf({ in: file, path, value }: ApiPart, name: string): ApiPart {
  return { in: file, path: [...path, name], value: isMapping(value) ? value[name] : undefined };
}

function reportMember({ list, part }: OperationPart, name: string, message: string, at?: 'name'): void {
  report(list, memberOf(part, name), message, at);
}

/** Returns the valid fields and reports the others. */
function readMembers(at: OperationPart): StatedOperation {
  const { value } = at;
  const parsed = operationSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  const { issues } = parsed.error;
  for (const fault of shapeFaults(issues)) reportMember(at, String(fault.path[0] ?? ''), faultMessage(fault));
  const invalid = new Set(issues.map((issue) => issue.path[0]));
  const valid = Object.entries(value).filter(([name]) => !invalid.has(name));
  return operationSchema.parse(Object.fromEntries(valid));
}

/** An unknown `x-` field is a misspelling if it resembles a gateway field. All others belong to other tools. */
function checkExtensionNames(at: OperationPart): void {
  for (const name of Object.keys(at.value)) {
    if (!name.startsWith('x-') || extensionNames.includes(name)) continue;
    const closest = closestName(name, extensionNames);
    if (closest !== undefined) {
      reportMember(at, name, `the field \`${name}\` is unknown; did you mean \`${closest}\`?`, 'name');
    }
  }
}

/** The default upstream if the operation names none, or if the upstreams could not be read. */
function readUpstream(at: OperationPart): string {
  const { upstreamNames } = at;
  const [fallback = ''] = upstreamNames ?? [];
  const written = at.value['x-upstream'];
  if (written === undefined || upstreamNames === undefined) return fallback;
  if (typeof written === 'string' && upstreamNames.includes(written)) return written;
  const advice = adviceOnName(String(written), upstreamNames, 'upstreams');
  reportMember(at, 'x-upstream', `\`x-upstream\` names no upstream of the configuration; ${advice}`);
  return fallback;
}

function checkDeprecation(at: OperationPart, stated: StatedOperation): void {
  const { value } = at;
  if (stated.deprecated !== true) {
    for (const name of deprecationNames.filter((each) => value[each] !== undefined)) {
      reportMember(at, name, `\`${name}\` needs \`deprecated: true\` beside it`, 'name');
    }
    return;
  }
  const { 'x-deprecated-since': sinceMs, 'x-deprecated-sunset': sunsetMs } = stated;
  if (value['x-deprecated-since'] === undefined) {
    const message =
      'without `x-deprecated-since`, a date, responses of this deprecated operation have no Deprecation header (RFC 9745)';
    report(at.warned, memberOf(at.part, 'deprecated'), message, 'name');
  }
  if (sinceMs !== undefined && sunsetMs !== undefined && sunsetMs < sinceMs) {
    const message = 'the sunset must not be earlier than the deprecation (RFC 9745 §4)';
    reportMember(at, 'x-deprecated-sunset', message);
  }
  if (stated['x-after-sunset'] !== undefined && value['x-deprecated-sunset'] === undefined) {
    reportMember(at, 'x-after-sunset', '`x-after-sunset` needs `x-deprecated-sunset` beside it', 'name');
  }
  const isStated = (name: string) => value[name] !== undefined;
  for (const { name, faults } of deprecationMembers) {
    for (const fault of faults({ stated, isStated })) reportMember(at, name, fault.message, fault.at);
  }
}

function compileAll(found: readonly FoundOperation[], context: ReadContext): Operation[] {
  const { list } = context;
  const names = nameAll(found, context);
  // `x-deprecated-successor` may contain the operationId, or the name that the gateway gave to the successor.
  const byId = new Map([...names].map(([one, name]): [string | undefined, FoundOperation] => [name, one]));
  for (const one of found) byId.set(one.writtenId, one);
  return found.map((one) => {
    const { stated, method, template, upstream } = one;
    const operation = compileOperation(stated, { id: names.get(one) ?? '', method, template, upstream });
    const successorId = stated['x-deprecated-successor'];
    const { deprecation } = operation;
    if (successorId === undefined || deprecation === undefined) return operation;
    const successor = byId.get(successorId);
    if (successor !== undefined && successor !== one) {
      return { ...operation, deprecation: { ...deprecation, successor: successor.template } };
    }
    list.add(() => {
      const others = names.values().filter((id) => id !== operation.id);
      const meant = didYouMean(successorId, others) || '; write the operationId of another operation';
      const message = `\`x-deprecated-successor\` names no other operation${meant}`;
      return { ...one.part.in.source.placeOf([...one.part.path, 'x-deprecated-successor']), message };
    });
    return operation;
  });
}

const usableId = /^[A-Za-z0-9._-]{1,100}$/;
const idCharsMax = 100;

/**
 * The name of an operation in plans, keys, metrics and logs is its operationId, with allowed characters in place of others, or is made from
 * method and path. Two operations may not have the same operationId, unless two paths refer to one operation by `$ref`.
 */
function nameAll(
  found: readonly FoundOperation[],
  { list, warned }: ReadContext,
): Map<FoundOperation, string> {
  const names = new Map<FoundOperation, string>();
  const taken = new Map<string, FoundOperation>();
  const withoutId: FoundOperation[] = [];
  const withOtherId: FoundOperation[] = [];
  for (const one of found) {
    const id = one.writtenId;
    const first = id === undefined ? undefined : taken.get(id);
    if (id === undefined || first?.part.value === one.part.value) withoutId.push(one);
    else if (!usableId.test(id)) withOtherId.push(one);
    else {
      names.set(one, id);
      if (first === undefined) taken.set(id, one);
      else list.add(() => duplicateId(id, one, first));
    }
  }
  const lastNumbers = new Map<string, number>();
  const name = (one: FoundOperation, text: string) => {
    const free = freeName(text, taken, lastNumbers);
    names.set(one, free);
    taken.set(free, one);
  };
  for (const one of withOtherId) name(one, one.writtenId ?? '');
  for (const one of withoutId) name(one, one.method.toLowerCase() + one.template);
  warnOfNames(withoutId, names, warned, 'no operationId of its own');
  warnOfNames(withOtherId, names, warned, 'an operationId with other characters than A-Z a-z 0-9 . _ -');
  return names;
}

function duplicateId(id: string, one: FoundOperation, first: FoundOperation): Problem {
  const placeOf = ({ part }: FoundOperation) => part.in.source.placeOf([...part.path, 'operationId']);
  return {
    ...placeOf(one),
    message: `the operationId \`${id}\` is already taken; each must be unique`,
    related: { ...placeOf(first), message: 'the first operation with this operationId is here' },
  };
}

/** @param lastNumbers the last number that a name got, so that a number is tried once */
function freeName(
  text: string,
  taken: ReadonlyMap<string, unknown>,
  lastNumbers: Map<string, number>,
): string {
  const name = text.replaceAll(/[^A-Za-z0-9.-]+/g, '_').replaceAll(/^_+|_+$/g, '') || '_';
  const short =
    name.length <= idCharsMax - 6
      ? name
      : `${name.slice(0, idCharsMax - 18)}_${hash('sha256', text, 'hex').slice(0, 10)}`;
  for (let number = (lastNumbers.get(short) ?? 0) + 1; ; number++) {
    const candidate = number === 1 ? short : `${short}_${number}`;
    if (taken.has(candidate)) continue;
    lastNumbers.set(short, number);
    return candidate;
  }
}

/** A single warning lists all operations whose name differs from the operationId. */
function warnOfNames(
  renamed: readonly FoundOperation[],
  names: ReadonlyMap<FoundOperation, string>,
  warned: ProblemList,
  why: string,
): void {
  const [first] = renamed;
  if (first === undefined) return;
  const message = `this operation has ${why}${likeOthers(renamed)}; in plans, keys and metrics it is called \`${names.get(first)}\``;
  report(warned, first.part, message, 'name');
}

/** For a single warning about the first of several parts. */
function likeOthers({ length }: readonly unknown[]): string {
  return length === 1 ? '' : `, like ${length - 1} other${length === 2 ? '' : 's'}`;
}
