/**
 * The hash that `ioredis` sends commands by, so what is told of a key's server is true of its commands. The package has no
 * types of its own.
 *
 * For a key with `{}` and a later `{` it names another slot than Redis does. `redis-keys.ts` makes no such key: neither a
 * prefix nor the id of an API key may have braces.
 */
declare module 'cluster-key-slot' {
  const keySlot: (key: string) => number;
  export = keySlot;
}
