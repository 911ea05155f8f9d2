import type { SettingsPart } from '../interfaces/configuration.ts';

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
