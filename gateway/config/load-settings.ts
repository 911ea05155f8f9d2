import { realpathSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import { settingsParts } from '../capabilities/lists/configuration.ts';
import type { RawKey } from '../keys/key-schema.ts';
import { ownLimits, toLimits } from '../keys/limits/limit-fields.ts';
import { compilePlans, limitsAt, plansAt } from '../keys/plans/plans.ts';
import { countedBy, type Operation, type Plans, type Settings, type UpstreamTls } from '../shared/model.ts';
import { isoSecondOf } from '../shared/schema/dates-and-durations.ts';
import { nameOf } from '../shared/schema/schema-faults.ts';
import { isMapping } from '../shared/structures/plain-data.ts';
import { certificatesOf, expiryNotice } from '../shared/tls/certificate-expiry.ts';
import type { References } from './api/follow-references.ts';
import { anyOperation } from './api/operation-schema.ts';
import { apiDocument } from './api/published-document.ts';
import { readOperations } from './api/read-operations.ts';
import { buildSettings } from './build-settings.ts';
import { checkAdmin } from './check/check-admin.ts';
import {
  checkCosts,
  checkGroups,
  checkLimits,
  checkMembers,
  checkTrial,
  type StatedLimits,
} from './check/check-limits.ts';
import { checkOwnPaths } from './check/check-own-paths.ts';
import { checkParts, compileParts, warnOfParts } from './check/check-parts.ts';
import { checkRedis } from './check/check-redis.ts';
import { checkScopes } from './check/check-scopes.ts';
import {
  checkTimeouts,
  readUpstreamNames,
  unusedUpstreams,
  upstreamsByPath,
} from './check/check-upstreams.ts';
import { configSizes } from './config-sizes.ts';
import { fitOperations } from './keys/key-uses.ts';
import type { ReadEntries } from './keys/read-entries.ts';
import { type ReadKeyList, readKeyList } from './keys/read-key-list.ts';
import { otherDocument } from './problems/other-document.ts';
import { type Place, type Problem, wholeFile } from './problems/problem.ts';
import { type RawSettings, type RawUpstream, settingsSchema } from './schema/settings-schema.ts';
import { shapeProblems } from './schema/shape-problems.ts';
import { readCertificate } from './source/credentials/read-certificate.ts';
import { readUpstreamTls } from './source/credentials/read-client-tls.ts';
import { readRedis } from './source/credentials/read-redis.ts';
import type { YamlSource } from './source/parse-yaml.ts';
import {
  type Contents,
  type Digests,
  type FileContent,
  type ReadFile,
  textOf,
} from './source/read-config-file.ts';
import { besideFile, createSourceReader, type LoadContext } from './source/source-reader.ts';

export interface LoadOptions {
  /** The main file, which names the other files. */
  readonly file: string;
  /** For `${NAME}`. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Used in place of files on disk, such as an edit that is not written yet or a file's last valid content. */
  readonly drafts?: ReadonlyMap<string, string | FileContent>;
  /** Treats a missing keys file as empty, for the command that creates it. */
  readonly makesKeysFile?: boolean;
  /** Reads no operations, so that commands can change keys while other files are broken. */
  readonly onlyKeys?: boolean;
  /** The files of the current configuration. An expired certificate is accepted if its file is unchanged. */
  readonly inForce?: Digests;
  /** The entries from an earlier call. An unchanged entry is not read again. */
  readonly before?: ReadEntries | undefined;
  /** Digests of contents that are known to be complete; by default all. A long text with another digest throws `UnsettledContent`. */
  readonly settled?: ReadonlySet<string> | undefined;
  /** Called before a file is parsed. */
  readonly onRead?: (file: string, digest: string) => void;
  /** Reads a file that is not in `drafts`; by default from disk. */
  readonly readFile?: (file: string) => ReadFile;
  /** Called with the keys of a valid configuration as the file states them, without the limits and operations of their plans. */
  readonly onKeys?: (keys: readonly WrittenKey[]) => void;
}

/** With the line at which its entry begins. */
export interface WrittenKey {
  readonly key: RawKey;
  readonly line: number;
}

export type Loaded = ValidSettings | InvalidSettings;

export interface ValidSettings {
  readonly kind: 'valid';
  readonly settings: Settings;
  /** Sentences about settings that are valid but probably mistakes. */
  readonly warnings: readonly string[];
  /** With their positions in the configuration. */
  readonly upstreamUrls: readonly { readonly url: string; readonly place: Place }[];
  /** The file with the keys, which may be the main file; undefined if all keys are in the key directory. */
  readonly keysFile: string | undefined;
  /** The option `before` of the next call. Cannot be sent to another thread. */
  readonly entries?: ReadEntries | undefined;
  /** Digests of the contents that these settings use. */
  readonly digests: Digests;
  readonly contents: Contents;
  /** A digest of everything that was read; equals `settings.version`. */
  readonly version: string;
}

export interface InvalidSettings {
  readonly kind: 'invalid';
  readonly problems: readonly Problem[];
  /**
   * For each problem, the files that may be at fault, the most likely first. Reports leave these paths out, because an operator may have
   * written a secret in place of a path.
   */
  readonly suspects: readonly (readonly string[])[];
  /** Includes missing files. */
  readonly digests: Digests;
  /** A digest of everything that was read. */
  readonly version: string;
}

/** The main file, the keys, the OpenAPI document and all other files. Reports all problems together, up to `configSizes.problemsMax`. */
export function loadSettings(options: LoadOptions): Loaded {
  const {
    file,
    env,
    drafts,
    makesKeysFile = false,
    onlyKeys = false,
    before,
    onRead,
    readFile,
    settled,
  } = options;
  const fileOf = (path: string) => besideFile(file, path);
  const reader = createSourceReader({ env, drafts, makesKeysFile, onRead, readFile, settled });
  const problems: Problem[] = [];

  const main = reader.read({ file, kind: 'settings', mentionedAt: wholeFile(file) });
  const other = main && otherDocument(file, main.value);
  if (other !== undefined) {
    const [digests, version] = [reader.digests(), reader.version()];
    return { kind: 'invalid', problems: [other], suspects: [[file]], digests, version };
  }
  const context = main && { main, mainFile: file, fileOf, reader, problems };
  const raw = main && parseShape(main, problems);
  const nowMs = Date.now();
  const stated = raw && compilePlans(raw.plans);
  const plans = stated && plansAt({ plans: stated }, nowMs);
  const inForce = plans && { plans, atMs: nowMs };
  const keyList = context && readKeyList({ ...context, inForce, before });
  const others = onlyKeys
    ? raw && nothingElse(raw)
    : context && readOthers({ ...context, raw, plans, keyList, inForce: options.inForce });

  const digests = reader.digests();
  const version = reader.version();
  const all = mergeProblems(reader.problems(), problems);
  if (!main || !raw || !stated || !inForce || !keyList || !others || all.length > 0) {
    const suspects = all.map(({ file: at, related, files = [at, related?.file ?? at] }) => files);
    return { kind: 'invalid', problems: all.map(withoutFiles), suspects, digests, version };
  }
  const lines = keyList.lines();
  options.onKeys?.(keyList.written().map((key, index) => ({ key, line: lines[index] ?? 1 })));
  const { keys, order } = keyList.table(inForce);
  const settings = buildSettings({
    raw,
    plans: stated,
    keys,
    keysFile:
      keyList.shownAs === undefined
        ? undefined
        : { path: keyList.shownAs, lines: order.map((entry) => lines[entry] ?? 1) },
    ...others,
    version,
  });
  const warnings = [
    ...warnOfLimits(raw, main, keyList),
    ...warnOfPlans(settings, main, nowMs),
    ...warnOfPastChanges(raw, main, nowMs),
    ...warnOfMembers(settings, main, nowMs),
    ...warnOfParts(raw, main, keys),
    ...others.apiWarnings,
    ...warnOfCertificates(settings, nowMs),
  ];
  for (const name of unusedUpstreams(settings)) {
    const need = raw.api === undefined ? 'this needs `api`, the API document, with' : 'write';
    warnings.push(
      `${file}: no operation is forwarded to the upstream \`${name}\`; ${need} \`x-upstream: ${name}\` on an operation`,
    );
  }
  if (settings.keys.size === 0 && !settings.directory)
    warnings.push(
      `${file}: there is no key, so every request gets 401; an empty keys file revokes every key that it had`,
    );
  const upstreamUrls = upstreamsByPath(raw).map(({ path, upstream: { url } }) => {
    return { url, place: main.placeOf([...path, 'url']) };
  });
  const { file: keysFile, entries } = keyList;
  const contents = reader.contents();
  return {
    kind: 'valid',
    settings,
    warnings: warnings.map(shorten),
    upstreamUrls,
    keysFile,
    entries,
    digests,
    contents,
    version,
  };
}

type Others = Pick<
  Parameters<typeof buildSettings>[0],
  'operations' | 'redis' | 'ofParts' | 'upstreamTls' | 'certificates' | 'docs'
> & { readonly apiWarnings: readonly string[] };

function nothingElse(raw: RawSettings): Others {
  return {
    operations: [],
    apiWarnings: [],
    redis: undefined,
    ofParts: compileParts(raw, undefined),
    upstreamTls: new Map(),
    certificates: {},
  };
}

interface OthersToRead extends LoadContext {
  readonly raw: RawSettings | undefined;
  readonly plans: Plans | undefined;
  readonly keyList: ReadKeyList | undefined;
  readonly inForce: Digests | undefined;
}

/** @returns undefined when a part could not be read */
function readOthers({ raw, plans, keyList, inForce, ...context }: OthersToRead): Others | undefined {
  const { main, problems } = context;
  const upstreams = readUpstreamNames(main);
  problems.push(...upstreams.problems);
  const api = readApi(context, upstreams.names);
  if (raw === undefined || plans === undefined) {
    problems.push(...(api?.problems ?? []));
    return undefined;
  }
  if (api !== undefined) {
    const { operations } = api;
    const misfits = [
      ...checkOwnPaths({ raw, main, operations }),
      ...(keyList ? checkScopes(scopesOf({ raw, main, keyList, operations })) : []),
    ];
    problems.push(...misfits.map((problem) => ({ ...problem, files: [problem.file, api.file] })));
  }
  const upstreamTls = new Map<RawUpstream, UpstreamTls>();
  for (const { path, upstream } of upstreamsByPath(raw)) {
    const tls = readUpstreamTls(upstream, path, context);
    if (tls !== undefined) upstreamTls.set(upstream, tls);
  }
  const redis = readRedis(raw, context);
  const ofParts = compileParts(raw, context);
  const listen = readCertificate('listen', raw.listen.tls, context, inForce);
  const admin = readCertificate('admin', raw.admin.tls, context, inForce);
  const certificates = { listen, admin };
  const docs = api && publish(raw, { ...api, plans }, context);
  problems.push(...(api?.problems ?? []));
  return (
    api && {
      operations: api.operations,
      apiWarnings: api.warnings,
      upstreamTls,
      redis,
      ofParts,
      certificates,
      docs,
    }
  );
}

function parseShape(source: YamlSource, problems: Problem[]): RawSettings | undefined {
  const parsed = settingsSchema.safeParse(source.value);
  if (!parsed.success) {
    problems.push(...shapeProblems(parsed.error, source));
    return undefined;
  }
  if (parsed.data.bans.max < parsed.data.bans.for) {
    problems.push({
      ...source.placeOf(['bans', 'max']),
      message: '`bans.max` must not be shorter than `bans.for`',
    });
  }
  problems.push(
    ...checkTimeouts(parsed.data, source),
    ...checkAdmin(parsed.data, source),
    ...checkRedis(parsed.data, source),
    ...checkParts(parsed.data, source),
  );
  return parsed.data;
}

/** Costs above limits, and trials without a limit of their plan. @returns at most `problemsMax` warnings */
function warnOfPlans({ plans, operations }: Settings, main: YamlSource, nowMs: number): string[] {
  const warnings: string[] = [];
  for (const plan of plans.values()) {
    const ofPlan = [
      ...checkTrial(plan, limitsAt(plan, nowMs)),
      ...checkGroups(plan, operations),
      ...checkCosts(plan, operations),
    ];
    for (const { path, message } of ofPlan) {
      if (warnings.length >= configSizes.problemsMax) return warnings;
      const { file, line, column } = main.placeOf(path);
      warnings.push(`${file}:${line}:${column}: ${message}`);
    }
  }
  return warnings;
}

/** Limits that have no effect: first of plans, then of keys. @returns at most `problemsMax` warnings */
function warnOfLimits(raw: RawSettings, main: YamlSource, keyList: ReadKeyList): string[] {
  const warnings: string[] = [];
  const warn = (from: YamlSource, stated: StatedLimits) => {
    for (const { path: at, message } of checkLimits(stated)) {
      if (warnings.length >= configSizes.problemsMax) return;
      const { file, line, column } = from.placeOf(at);
      warnings.push(`${file}:${line}:${column}: ${message}`);
    }
  };
  for (const [name, plan] of Object.entries(raw.plans)) {
    warn(main, { path: ['plans', name], limits: toLimits(plan) });
    for (const [index, change] of (plan.changes ?? []).entries())
      warn(main, { path: ['plans', name, 'changes', index], limits: toLimits(change) });
    if (plan.trial !== undefined)
      warn(main, { path: ['plans', name, 'trial'], limits: toLimits(plan.trial) });
  }
  if (keyList.entries?.uses.warned === 0) return warnings;
  const { path, source, written } = keyList;
  const from = source();
  written().forEach((key, index) => {
    warn(from, { path: [...path, index], isKey: true, limits: ownLimits(key) });
  });
  return warnings;
}

/**
 * Warns once of each plan whose `changes` have begun to apply. The last applied change replaces the plan's own limits and all earlier
 * changes.
 */
function warnOfPastChanges(raw: RawSettings, main: YamlSource, nowMs: number): string[] {
  return Object.entries(raw.plans).flatMap(([name, { changes = [] }]) => {
    const index = changes.findLastIndex(({ from }) => from <= nowMs);
    const change = changes[index];
    if (change === undefined) return [];
    const at = ['plans', name, 'changes', index];
    const { file, line, column } = main.placeOf(at);
    const earlier = index === 0 ? 'this entry' : `the first ${index + 1} entries`;
    return [
      `${file}:${line}:${column}: ${nameOf(at)} has applied since ${isoSecondOf(change.from)}; write its limits as the limits of the plan, and remove ${earlier}`,
    ];
  });
}

function warnOfMembers({ plans }: Settings, main: YamlSource, nowMs: number): string[] {
  return [...plans.values()].flatMap((plan) =>
    checkMembers(plan, nowMs).map(({ path, message }) => {
      const { file, line, column } = main.placeOf(path);
      return `${file}:${line}:${column}: ${message}`;
    }),
  );
}

/** Keys are checked one by one only if some key names an unknown operation. */
function scopesOf(read: {
  readonly raw: RawSettings;
  readonly main: YamlSource;
  readonly keyList: ReadKeyList;
  readonly operations: readonly Operation[];
}) {
  const { keyList, operations } = read;
  const known = new Set(operations.map(({ id }) => id));
  const isSound = keyList.entries !== undefined && fitOperations(keyList.entries.uses, known);
  const keys = isSound ? [] : keyList.written();
  return { ...read, keyList: { source: isSound ? read.main : keyList.source(), path: keyList.path, keys } };
}

interface ReadApi {
  readonly file: string;
  readonly operations: readonly Operation[];
  readonly problems: readonly Problem[];
  readonly warnings: readonly string[];
  /** Absent without an API document. */
  readonly document: References | undefined;
}

function readApi(context: LoadContext, upstreamNames: readonly string[] | undefined): ReadApi | undefined {
  const { main } = context;
  const api = isMapping(main.value) ? main.value.api : undefined;
  if (api === undefined) {
    const [upstream = ''] = upstreamNames ?? [];
    const operations = [anyOperation(upstream)];
    return { file: context.mainFile, operations, problems: [], warnings: [], document: undefined };
  }
  if (typeof api !== 'string') return undefined;
  const file = context.fileOf(api);
  // The API reference must not contain the main file, the keys file or a secret file. All of these files have digests by now.
  const ownFiles = new Set([...context.reader.digests().keys()].map(realPath));
  const folders = [context.mainFile, file].map((path) => realPath(dirname(path)));
  const open = (path: string, mentionedAt: Place) => {
    const message = path === file ? undefined : refusalOf(path, { folders, ownFiles });
    if (message === undefined) return openApiFile(path, mentionedAt, context);
    context.problems.push({ ...mentionedAt, message });
    return undefined;
  };
  const source = open(file, main.placeOf(['api']));
  if (source === undefined) return undefined;
  const { references, ...read } = readOperations(source, { file, upstreamNames, open });
  return { ...read, file, document: references };
}

/**
 * Why the gateway does not open a file that a `$ref` names. The API document may come from another party, and the API reference publishes
 * its files. Symbolic links are resolved before the check.
 */
function refusalOf(
  path: string,
  { folders, ownFiles }: { readonly folders: readonly string[]; readonly ownFiles: ReadonlySet<string> },
): string | undefined {
  const real = realPath(path);
  if (!/\.(ya?ml|json)$/i.test(real)) {
    return 'the gateway follows `$ref` to a file only if its name ends in .yaml, .yml or .json';
  }
  if (ownFiles.has(real)) return 'this `$ref` leads to a file of the configuration, not of the API document';
  if (folders.some((folder) => !relative(folder, real).startsWith('..'))) return undefined;
  return 'this `$ref` leads out of the folders of the configuration and of the API document; copy the file there';
}

/** The path of a missing file is returned unchanged, so that a later read reports it. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}

function openApiFile(
  file: string,
  mentionedAt: Place,
  { reader, problems }: LoadContext,
): YamlSource | undefined {
  const bytes = reader.readBytes({ file, kind: 'api', mentionedAt });
  if (bytes === undefined) return undefined;
  const text = textOf(bytes);
  // A failed download often returns an HTML page in place of a document.
  if (!text.trimStart().startsWith('<')) return reader.parse({ file, kind: 'api', text });
  problems.push({ ...wholeFile(file), message: 'this is HTML or XML; save the OpenAPI document itself' });
  return undefined;
}

/** Undefined if `docsPath` is not set. */
function publish(
  raw: RawSettings,
  { document, operations, plans }: Pick<ReadApi, 'document' | 'operations'> & { readonly plans: Plans },
  { main, problems }: LoadContext,
): Settings['docs'] | undefined {
  const { docsPath: path, baseUrl } = raw;
  if (path === undefined) return undefined;
  if (document === undefined) {
    problems.push({
      ...main.placeOf(['docsPath'], 'name'),
      message: '`docsPath` needs `api`, the document to show',
    });
    return undefined;
  }
  const nowMs = Date.now();
  const counted = countedBy(operations);
  const api = { origin: new URL(baseUrl).origin, counted };
  const sentences = settingsParts.flatMap((part) => part.documentText?.(raw, api) ?? []);
  const json = apiDocument(document, { baseUrl, plans, counted, nowMs, sentences });
  if (json !== undefined) return { path, document: json };
  const message = `the API document is longer than ${configSizes.publishedCharsMax} characters as JSON; remove \`docsPath\``;
  problems.push({ ...main.placeOf(['docsPath']), message });
  return undefined;
}

function warnOfCertificates(settings: Settings, nowMs: number): string[] {
  return Object.entries(certificatesOf(settings)).flatMap(
    ([listener, certificate]) => expiryNotice(listener, certificate, nowMs) ?? [],
  );
}

/** All problems, sorted by file and place. Other problems with a value that could not be read are left out. */
function mergeProblems(ofReading: readonly Problem[], ofRules: readonly Problem[]): Problem[] {
  const unread = new Set(ofReading.map(placeName));
  const both = [...ofReading, ...ofRules.filter((problem) => !unread.has(placeName(problem)))];
  // Both listeners report the same problem if they use the same certificate.
  const all = [...new Map(both.map((each) => [`${placeName(each)} ${each.message}`, each])).values()];
  const files = [...new Set(all.map(({ file }) => file))];
  const sorted = all
    .sort((a, b) => files.indexOf(a.file) - files.indexOf(b.file) || a.line - b.line || a.column - b.column)
    .map((problem) => ({ ...problem, message: shorten(problem.message) }));
  const next = sorted[configSizes.problemsMax];
  if (next === undefined) return sorted;
  return [
    ...sorted.slice(0, configSizes.problemsMax),
    { ...next, message: 'further problems are not listed' },
  ];
}

/** Messages repeat names from the file, and a name may be as long as the file. */
function shorten(message: string): string {
  const { messageCharsMax } = configSizes;
  return message.length <= messageCharsMax ? message : `${message.slice(0, messageCharsMax)}…`;
}

function withoutFiles({ files: _, ...problem }: Problem): Problem {
  return problem;
}

function placeName({ file, line, column }: Problem): string {
  return `${file}:${line}:${column}`;
}
