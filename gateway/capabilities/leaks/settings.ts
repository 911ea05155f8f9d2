import { hash } from 'node:crypto';
import { digestStart } from '../../shared/secrets.ts';
import type { SettingsPart } from '../interfaces/configuration.ts';

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
