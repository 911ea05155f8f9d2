import type { SettingsFiles } from '../../capabilities/interfaces/configuration.ts';
import { settingsParts } from '../../capabilities/lists/configuration.ts';
import { kindsByType } from '../../fleet/kinds/kinds.ts';
import type { Keys, SettingsMembers } from '../../shared/model.ts';
import { nameOf } from '../../shared/schema/schema-faults.ts';
import { configSizes } from '../config-sizes.ts';
import type { Problem } from '../problems/problem.ts';
import { createProblemList } from '../problems/problem-list.ts';
import { hasDirectory, hasRedis, type RawSettings } from '../schema/settings-schema.ts';
import { parseCertificates } from '../source/credentials/parse-pem.ts';
import type { YamlSource } from '../source/parse-yaml.ts';
import type { LoadContext } from '../source/source-reader.ts';

export function checkParts(raw: RawSettings, main: YamlSource): readonly Problem[] {
  const list = createProblemList();
  const others = {
    hasDirectory: hasDirectory(raw),
    planNames: Object.keys(raw.plans),
    canMatch(type, filter) {
      return kindsByType.get(type)?.filters.includes(filter) ?? false;
    },
  } satisfies Parameters<NonNullable<(typeof settingsParts)[number]['faults']>>[1];
  for (const part of settingsParts) {
    for (const { path, isName, message, related } of part.faults?.(raw, others) ?? []) {
      if (list.isFull()) return list.problems;
      list.add(() => ({
        ...main.placeOf(path, isName ? 'name' : 'value'),
        message,
        ...(related && { related: { ...main.placeOf(related), message: `${nameOf(related)} is here` } }),
      }));
    }
  }
  return list.problems;
}

/** At most `problemsMax`. */
export function warnOfParts(raw: RawSettings, main: YamlSource, keys: Keys): readonly string[] {
  const others = { hasDirectory: hasDirectory(raw), hasKey: (id: string) => keys.has(id) };
  const warnings: string[] = [];
  for (const part of settingsParts) {
    for (const { path, message } of part.warnings?.(raw, others) ?? []) {
      if (warnings.length >= configSizes.problemsMax) return warnings;
      const { file, line, column } = main.placeOf(path);
      warnings.push(`${file}:${line}:${column}: ${message}`);
    }
  }
  return warnings;
}

/** @param context undefined if no file may be read */
export function compileParts(raw: RawSettings, context: LoadContext | undefined): Partial<SettingsMembers> {
  const files: SettingsFiles = {
    read: (file, path) => context?.reader.readText({ file: context.fileOf(file), main: context.main, path }),
    readAuthorities(file, path) {
      const text = files.read(file, path);
      const parsed = text === undefined ? [] : parseCertificates(text);
      if (typeof parsed === 'string') files.report(file, { line: 1, message: parsed });
      return text;
    },
    variable(name, path) {
      const found = context?.reader.lookUp(name, false);
      if (found?.kind === 'unreadable') files.refuse(path, found.reason);
      return found?.kind === 'set' ? found.value : undefined;
    },
    refuse: (path, message) => void context?.problems.push({ ...context.main.placeOf(path), message }),
    report(file, { line, message }) {
      context?.problems.push({ file: context.fileOf(file), line, column: 1, excerpt: '', message });
    },
  };
  return Object.assign(
    {},
    ...settingsParts.map((part) => part.compile?.(raw, files, { hasRedis: hasRedis(raw) })),
  );
}
