import type { Method, Operation } from '../../shared/model.ts';
import { closestName, didYouMean, listNames } from '../../shared/schema/closest-name.ts';
import { configSizes } from '../config-sizes.ts';
import type { Problem } from '../problems/problem.ts';
import { createProblemList } from '../problems/problem-list.ts';
import type { YamlSource } from '../source/parse-yaml.ts';
import { isMapping, type Mapping } from '../source/yaml-to-plain.ts';
import { checkTemplates } from './check-path-templates.ts';
import {
  anId,
  compileOperation,
  deprecationNames,
  extensionNames,
  operationSchema,
  type StatedOperation,
} from './operation-schema.ts';

export interface ReadOperations {
  /** Templates with fewer parameters come first, so that the first match is the most specific one. */
  readonly operations: readonly Operation[];
  readonly problems: readonly Problem[];
}

type Path = readonly PropertyKey[];
type Report = (path: Path, message: string | (() => string), part?: 'name') => void;

/** An operation before its successor's operationId has been looked up. */
interface FoundOperation {
  readonly operation: Operation;
  readonly path: Path;
  readonly successorId: string | undefined;
}

interface ReadOptions {
  /** The names in the order of the configuration, the default first; undefined when they could not be read. */
  readonly upstreamNames: readonly string[] | undefined;
  readonly pathsMax?: number;
}

/** Reads the operations of an OpenAPI document: paths, methods, operationIds and the gateway's own `x-` fields. */
export function readOperations(
  source: YamlSource,
  { upstreamNames, pathsMax = configSizes.pathsMax }: ReadOptions,
): ReadOperations {
  const list = createProblemList();
  const { problems } = list;
  const report: Report = (path, message, part) =>
    list.add(() => ({
      ...source.placeOf(path, part),
      message: typeof message === 'string' ? message : message(),
    }));

  const paths = isMapping(source.value) ? source.value.paths : undefined;
  if (!isMapping(paths)) {
    // No excerpt: the file's first line would not help, and it may be a secret if `api` names the keys file by mistake.
    const place = { ...source.placeOf(['paths']), excerpt: '' };
    const message = 'an OpenAPI document needs `paths`, a mapping of path templates';
    return { operations: [], problems: [{ ...place, message }] };
  }
  const templates = Object.keys(paths).filter((template) => !template.startsWith('x-'));
  const excess = templates[pathsMax];
  if (excess !== undefined) {
    report(['paths', excess], `\`paths\` may hold at most ${pathsMax} path templates`, 'name');
    return { operations: [], problems };
  }
  for (const { template, message, other } of checkTemplates(templates)) {
    if (list.isFull()) break;
    list.add(() => ({
      ...source.placeOf(['paths', template], 'name'),
      message,
      ...(other !== undefined && {
        related: { ...source.placeOf(['paths', other], 'name'), message: 'the other path is here' },
      }),
    }));
  }
  const found: FoundOperation[] = [];
  for (const template of templates) {
    if (list.isFull()) return { operations: [], problems };
    found.push(...readPathItem(template, paths[template], { report, upstreamNames }));
  }
  if (templates.length > 0 && found.length === 0 && problems.length === 0) {
    report(['paths'], '`paths` has no operation; the gateway would answer 404 to everything', 'name');
  }

  const byId = new Map<string, FoundOperation>();
  for (const candidate of found) {
    const { id } = candidate.operation;
    const first = byId.get(id);
    if (first === undefined) byId.set(id, candidate);
    else {
      list.add(() => ({
        ...source.placeOf([...candidate.path, 'operationId']),
        message: `the operationId \`${id}\` is already taken; each must be unique`,
        related: { ...source.placeOf([...first.path, 'operationId']), message: 'it is here' },
      }));
    }
  }
  const operations = found.map((candidate) => resolveSuccessor(candidate, byId, report));
  return { operations: operations.toSorted((a, b) => parameterCount(a) - parameterCount(b)), problems };
}

const methods: ReadonlyMap<string, Method> = new Map(
  (['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const).map((method) => [
    method.toLowerCase(),
    method,
  ]),
);

/** The fields of a path item that are not operations (OpenAPI 3.1 §4.8.9). */
const pathItemFields = new Set(['summary', 'description', 'parameters', 'servers']);

interface ReadContext {
  readonly report: Report;
  readonly upstreamNames: readonly string[] | undefined;
}

function readPathItem(template: string, item: unknown, context: ReadContext): FoundOperation[] {
  const { report } = context;
  const itemPath = ['paths', template];
  if (!isMapping(item)) {
    report(itemPath, `\`${template}\` must be a mapping of methods to operations`);
    return [];
  }
  return Object.entries(item).flatMap(([name, value]) => {
    const path = [...itemPath, name];
    if (extensionNames.includes(name)) {
      report(path, `\`${name}\` belongs to an operation; write it under a method of this path`, 'name');
    }
    if (pathItemFields.has(name) || name.startsWith('x-')) return [];
    const method = methods.get(name);
    if (method === undefined) {
      report(path, () => unsupportedMethod(name), 'name');
      return [];
    }
    if (!isMapping(value)) {
      report(path, `\`${name}\` must be a mapping that describes the operation`);
      return [];
    }
    return readOperation({ method, template, value, path, ...context });
  });
}

function unsupportedMethod(name: string): string {
  if (name === 'head') return 'HEAD is served wherever GET is; remove it';
  if (name === 'trace') return 'TRACE is always answered 501; remove it';
  const meant = didYouMean(name, methods.keys()) || `; supported are: ${[...methods.keys()].join(', ')}`;
  return `\`${name}\` is no method that the gateway supports${meant}`;
}

interface OperationSource extends ReadContext {
  readonly method: Method;
  readonly template: string;
  readonly value: Mapping;
  readonly path: Path;
}

function readOperation(source: OperationSource): FoundOperation[] {
  const { method, template, value, path, report } = source;
  checkExtensionNames(source);
  const stated = readMembers(source);
  if (stated['x-upgrade'] !== undefined && method !== 'GET') {
    report([...path, 'x-upgrade'], 'only a GET can be upgraded to a WebSocket (RFC 6455 §4.1)', 'name');
  }
  checkDeprecation(source, stated);
  const upstream = readUpstream(source);
  const { operationId: id } = stated;
  if (value.operationId === undefined)
    report([...path, 'operationId'], `\`operationId\` is missing; write ${anId}`);
  if (id === undefined) return [];
  const operation = compileOperation(stated, { id, method, template, upstream });
  return [{ operation, path, successorId: stated['x-deprecated-successor'] }];
}

/** Returns the valid members and reports the invalid ones. */
function readMembers({ value, path, report }: OperationSource): StatedOperation {
  const parsed = operationSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  const { issues } = parsed.error;
  for (const {
    path: [name = ''],
    message,
  } of issues)
    report([...path, name], `\`${String(name)}\` ${message}`);
  const invalid = new Set(issues.map((issue) => issue.path[0]));
  const valid = Object.entries(value).filter(([name]) => !invalid.has(name));
  return operationSchema.parse(Object.fromEntries(valid));
}

/** Reports an unknown `x-` field that resembles a gateway field as misspelt. Other unknown fields belong to other tools. */
function checkExtensionNames({ value, path, report }: OperationSource): void {
  for (const name of Object.keys(value)) {
    if (!name.startsWith('x-') || extensionNames.includes(name)) continue;
    const closest = closestName(name, extensionNames);
    if (closest !== undefined) {
      report([...path, name], `the field \`${name}\` is unknown; did you mean \`${closest}\`?`, 'name');
    }
  }
}

/** The operation's upstream. It is the default when the operation names none or the upstreams could not be read. */
function readUpstream({ value, path, report, upstreamNames }: OperationSource): string {
  const [fallback = ''] = upstreamNames ?? [];
  const written = value['x-upstream'];
  if (written === undefined || upstreamNames === undefined) return fallback;
  if (typeof written === 'string' && upstreamNames.includes(written)) return written;
  report([...path, 'x-upstream'], () => {
    const closest = closestName(String(written), upstreamNames);
    const advice =
      closest === undefined ? `upstreams are: ${listNames(upstreamNames)}` : `did you mean \`${closest}\`?`;
    return `\`x-upstream\` names no upstream of the configuration; ${advice}`;
  });
  return fallback;
}

function checkDeprecation({ value, path, report }: OperationSource, stated: StatedOperation): void {
  if (stated.deprecated !== true) {
    for (const name of deprecationNames.filter((each) => value[each] !== undefined)) {
      report([...path, name], `\`${name}\` needs \`deprecated: true\` beside it`, 'name');
    }
    return;
  }
  const { 'x-deprecated-since': sinceMs, 'x-deprecated-sunset': sunsetMs } = stated;
  if (value['x-deprecated-since'] === undefined) {
    const wanted = '`x-deprecated-since`, the date for the Deprecation header (RFC 9745)';
    report([...path, 'deprecated'], `a deprecated operation needs ${wanted}`, 'name');
  }
  if (sinceMs !== undefined && sunsetMs !== undefined && sunsetMs < sinceMs) {
    const message = 'the sunset must not be earlier than the deprecation (RFC 9745 §4)';
    report([...path, 'x-deprecated-sunset'], message);
  }
  if (stated['x-after-sunset'] !== undefined && value['x-deprecated-sunset'] === undefined) {
    report([...path, 'x-after-sunset'], '`x-after-sunset` needs `x-deprecated-sunset` beside it', 'name');
  }
}

function resolveSuccessor(
  { operation, path, successorId }: FoundOperation,
  byId: ReadonlyMap<string, FoundOperation>,
  report: Report,
): Operation {
  if (successorId === undefined || operation.deprecation === undefined) return operation;
  const successor = byId.get(successorId)?.operation;
  if (successor === undefined || successor.id === operation.id) {
    report([...path, 'x-deprecated-successor'], () => {
      const others = byId.keys().filter((id) => id !== operation.id);
      const meant = didYouMean(successorId, others) || '; write the operationId of another operation';
      return `\`x-deprecated-successor\` names no other operation${meant}`;
    });
    return operation;
  }
  return { ...operation, deprecation: { ...operation.deprecation, successor: successor.template } };
}

function parameterCount({ template }: Operation): number {
  return template.split('{').length;
}
