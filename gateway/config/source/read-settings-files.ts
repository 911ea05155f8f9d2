import { settingsFiles } from '../../capabilities/lists/schemas.ts';
import type { SettingsMembers } from '../../shared/model.ts';
import { wholeFile } from '../problems/problem.ts';
import type { RawSettings } from '../schema/settings-schema.ts';
import type { LoadContext } from './source-reader.ts';

/** Reads the files that the settings of capabilities name. Returns the members of the settings that these files make. */
export function readSettingsFiles(
  raw: RawSettings,
  { main, fileOf, reader, problems }: LoadContext,
): Partial<SettingsMembers> {
  const members: Partial<SettingsMembers> = {};
  for (const { path, nameIn, parse } of settingsFiles) {
    const name = nameIn(raw);
    if (name === undefined) continue;
    const file = fileOf(name);
    const text = reader.readText({ file, main, path });
    const parsed = text === undefined ? {} : parse(text);
    if (typeof parsed !== 'string') Object.assign(members, parsed);
    else problems.push({ ...wholeFile(file), message: `this file ${parsed}` });
  }
  return members;
}
