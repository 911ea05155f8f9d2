import type * as z from 'zod';
import { fields, flag, ownPath } from '../../shared/schema/schema-parts.ts';
import type { SettingsPart } from '../interfaces/configuration.ts';

declare module '../interfaces/configuration.ts' {
  interface StatedSettingsMembers extends z.output<z.ZodObject<typeof holderShape>> {}
}
declare module '../../shared/model.ts' {
  interface SettingsMembers extends z.output<z.ZodObject<typeof holderShape>> {}
}

export const holderShape = {
  limitsPath: ownPath('/limits')
    .optional()
    .describe(
      'The path where a client can read the limits and counts of its key. The path is outside the base URL. Without this setting, there is no such path.',
    ),
  selfService: fields('a mapping with rotate', {
    rotate: flag()
      .default(false)
      .describe('Whether the holder of a directory key can get a new secret, at `limitsPath`/rotate.'),
  })
    .prefault({})
    .describe('What holders may change themselves about their keys; needs `limitsPath`.'),
};

/** The paths below `limitsPath`: data of the caller's own key, and files of the page for key holders. */
export const holderParts = ['usage', 'deprecated', 'rotate', 'holder.js', 'holder.css'];

export const holderSettings: SettingsPart = {
  ownPaths({ limitsPath }) {
    if (limitsPath === undefined) return [];
    const below = holderParts.map((part) => {
      const path = `${limitsPath}/${part}`;
      const advice = 'it is served with `limitsPath`: write another path';
      return { setting: 'limitsPath', path, name: `\`${path}\``, advice };
    });
    return [{ setting: 'limitsPath', path: limitsPath }, ...below];
  },

  faults({ selfService, limitsPath }, { hasDirectory }) {
    if (!selfService.rotate || (limitsPath !== undefined && hasDirectory)) return [];
    const message =
      limitsPath === undefined
        ? '`selfService.rotate` needs `limitsPath`, below which holders rotate their secrets'
        : '`selfService.rotate` needs the key directory: write `keys: { directory: true }`, and `file` beside it if there is a keys file';
    return [{ path: ['selfService', 'rotate'], message }];
  },

  documentText: ({ limitsPath }, { origin, counted }) =>
    limitsPath &&
    `\`GET ${origin}${limitsPath}\` returns the limits of a key and the remaining ${counted}s, and is not charged.`,

  initLine: 'limitsPath: /limits # the path where a client reads the limits and counts of its key',
};
