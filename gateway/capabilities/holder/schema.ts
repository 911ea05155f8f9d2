import type * as z from 'zod';
import { fields, flag, ownPath } from '../../shared/schema/schema-parts.ts';

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
      'The path where a client can read the limits and counts of its key. It does not get the prefix of the base URL.',
    ),
  selfService: fields('a mapping with rotate', {
    rotate: flag()
      .default(false)
      .describe(
        'Whether the holder of a directory key can get a new secret, at `limitsPath`/rotate. Needs `limitsPath` and `keys.directory`.',
      ),
  })
    .prefault({})
    .describe('What holders may change themselves about their keys.'),
};
