import type { SettingsFile } from '../../interfaces/configuration.ts';
import { parsePublicKeys } from './public-keys.ts';

/** The file with the public keys of GitHub. */
export const githubKeysFile: SettingsFile = {
  path: ['leaks', 'github', 'keysFile'],
  nameIn: ({ leaks }) => leaks.github?.keysFile,
  parse(text) {
    const githubKeys = parsePublicKeys(text, 'refused');
    return typeof githubKeys === 'string' ? githubKeys : { githubKeys };
  },
};
