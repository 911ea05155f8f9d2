/**
 * The package has no types itself. ioredis finds the server of a key with this hash function.
 *
 * The function and Redis compute different slots for a key with `{}` and a later `{`. `redis-keys.ts` makes no such key, because neither a
 * prefix nor the id of an API key may have braces.
 */

declare module 'cluster-key-slot' {
  const keySlot: (key: string) => number;
  export = keySlot;
}
