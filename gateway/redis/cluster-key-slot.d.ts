/**
 * The hash function by which ioredis itself finds the server of a command. The package has no types.
 *
 * It differs from Redis for a key with `{}` and a later `{`. No key of `redis-keys.ts` is like that, because neither a prefix nor
 * the id of an API key may have braces.
 */

declare module 'cluster-key-slot' {
  const keySlot: (key: string) => number;
  export = keySlot;
}
