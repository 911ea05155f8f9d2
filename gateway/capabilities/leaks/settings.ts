import { hash } from 'node:crypto';
import { digestStart } from '../../shared/secrets.ts';
import type { SettingsPart } from '../interfaces/configuration.ts';
import { parsePublicKeys } from './github/public-keys.ts';

/** `leaksPath` and `leaks`: the path for reports of GitHub, its public keys, and what a report does. */
export const leaksSettings: SettingsPart = {
  ownPaths: ({ leaksPath }) => (leaksPath === undefined ? [] : [{ setting: 'leaksPath', path: leaksPath }]),

  /** Without public keys, `leaksPath` could not accept any report. */
  faults({ leaksPath, leaks }) {
    if (leaksPath === undefined || leaks.github !== undefined) return [];
    const message =
      '`leaksPath` needs `leaks: { github: { keysUrl } }` or `keysFile`, the public keys with which GitHub signs its reports';
    return [{ path: ['leaksPath'], message }];
  },

  warnings({ leaksPath, leaks }) {
    if (leaksPath !== undefined || leaks.github === undefined) return [];
    const message =
      '`leaks.github` has no effect without `leaksPath`, the path that accepts the reports of GitHub; write `leaksPath: /leaks`';
    return [{ path: ['leaks', 'github'], message }];
  },

  /** Reads the public keys of GitHub in `keysFile`. */
  compile({ leaks }, files) {
    const keysFile = leaks.github?.keysFile;
    const text = keysFile && files.read(keysFile, ['leaks', 'github', 'keysFile']);
    if (!keysFile || text === undefined) return {};
    const githubKeys = parsePublicKeys(text, 'refused');
    if (typeof githubKeys !== 'string') return { githubKeys };
    files.report(keysFile, { line: 1, message: `this file ${githubKeys}` });
    return {};
  },

  /** Adds the public keys of the file to the stated form of `leaks`. */
  shown({ githubKeys }, stated) {
    const { github, ...leaks } = Object(stated.leaks);
    const keys = githubKeys?.map(({ identifier, pem }) => ({
      identifier,
      digestStart: digestStart(hash('sha256', pem, 'hex')),
    }));
    return { leaks: { ...leaks, github: github && { ...github, keys } } };
  },
};
