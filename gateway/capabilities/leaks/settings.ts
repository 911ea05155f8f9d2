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

  needsRedis({ leaks: { onLeak, github } }) {
    if (onLeak === 'report' || (onLeak === undefined && github === undefined)) return [];
    const instead = 'write `leaks: { onLeak: report }`, with which leaks are only recorded';
    return [{ path: ['leaks', 'onLeak'], lost: 'a restart would admit a leaked secret again', instead }];
  },

  warnings({ leaksPath, leaks }) {
    if (leaksPath !== undefined || leaks.github === undefined) return [];
    const message =
      '`leaks.github` has no effect without `leaksPath`, the path that accepts the reports of GitHub; write `leaksPath: /leaks`';
    return [{ path: ['leaks', 'github'], message }];
  },

  /**
   * Reads the public keys of GitHub in `keysFile`. A leaked secret ends by default, because strangers use a published secret within minutes.
   * Without Redis it does not end, because a restart would admit it again.
   */
  compile({ leaks: stated }, files, { hasRedis }) {
    const leaks = { ...stated, onLeak: stated.onLeak ?? (hasRedis ? 'revoke' : 'report') } as const;
    const keysFile = leaks.github?.keysFile;
    const text = keysFile && files.read(keysFile, ['leaks', 'github', 'keysFile']);
    if (!keysFile || text === undefined) return { leaks };
    const githubKeys = parsePublicKeys(text, 'refused');
    if (typeof githubKeys !== 'string') return { leaks, githubKeys };
    files.report(keysFile, { line: 1, message: `this file ${githubKeys}` });
    return { leaks };
  },

  /** Adds the default of `onLeak` and the public keys of the file to the stated form of `leaks`. */
  shown({ leaks: { onLeak }, githubKeys }, stated) {
    const { github } = Object(stated.leaks);
    const keys = githubKeys?.map(({ identifier, pem }) => ({
      identifier,
      digestStart: digestStart(hash('sha256', pem, 'hex')),
    }));
    return { leaks: { onLeak, github: github && { ...github, keys } } };
  },
};
