import type { Loaded } from '../../gateway/config/load-settings.ts';
import type { LoadedInThread } from '../../gateway/config/loader/settings-loader.ts';
import type { Keys } from '../../gateway/shared/model.ts';

/** The content of a loaded configuration. The keys have the form that `keysView` returns. */
export function loadedView(loaded: Loaded | LoadedInThread): object {
  if (loaded.kind === 'invalid') return loaded;
  const { kind, settings, warnings, upstreamUrls, keysFile, digests, version } = loaded;
  const view = { ...settings, keys: keysView(settings.keys) };
  return { kind, settings: view, warnings, upstreamUrls, keysFile, digests, version };
}

/** Every key with its secrets. The object contains the results of all methods of `Keys`, so that a comparison tests each method. */
export function keysView(keys: Keys): object {
  const tallied: unknown[] = [];
  keys.tally((...one) => tallied.push(one));
  const all = [...keys.ids()].map((id, rank) => {
    const secrets = keys.secretsOf(id);
    const found = secrets.map(({ digest }) => keys.find(digest)?.key.id);
    return { id, rank, isAt: keys.rankOf(id), has: keys.has(id), key: keys.get(id), secrets, found };
  });
  return { size: keys.size, secrets: keys.secrets, all, tallied: tallied.map(String).sort() };
}
