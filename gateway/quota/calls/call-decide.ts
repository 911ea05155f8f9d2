import type { Result } from 'ioredis';
import type { RedisConnection, RedisNode } from '../../redis/redis-connection.ts';
import { decideFunction } from './library.ts';

/**
 * Calls `decideKeys` as a Redis Function. A server without the function gets it with the next call: after a start, a failover or `FUNCTION
 * FLUSH`, or when a slot has moved to a new master. A server may refuse functions, for example because of its ACL, version or memory. It
 * then runs the same source as a script, and is asked again after `retryMs`.
 */
export function createDecideCaller({
  redis,
  retryMs,
  onRefusal = () => {},
}: {
  readonly redis: RedisConnection;
  readonly retryMs: number;
  /** Called when the first server refuses functions, when the reason changes, and with undefined when no server refuses them. */
  readonly onRefusal?: ((reason: string | undefined) => void) | undefined;
}) {
  const { commands } = redis;
  const { name, library, script } = decideFunction;
  const refusals = new Map<RedisNode, { readonly reason: string; readonly retryAtMs: number }>();
  let reported: string | undefined;
  commands.defineCommand('decideKeysByScript', { lua: script });

  /** @param keys the names of the hashes, on one server */
  return async (keys: readonly string[], args: readonly Buffer[]): Promise<Buffer> => {
    const node = redis.nodeOf(keys[0] ?? '');
    const refusal = refusals.get(node);
    if (refusal !== undefined && performance.now() < refusal.retryAtMs) return callScript(keys, args);
    try {
      const reply = await callFunction(keys, args);
      accept(node);
      return reply;
    } catch (error) {
      // The call may have been redirected, because the slot of the keys has moved.
      return callAgain(redis.nodeOf(keys[0] ?? ''), keys, args, error as Error);
    }
  };

  async function callAgain(node: RedisNode, keys: readonly string[], args: readonly Buffer[], error: Error) {
    if (isMissing(error)) {
      const again = await loadAndCall(node, keys, args);
      if (Buffer.isBuffer(again)) return again;
      if (!isMissing(again)) throw again;
      // A slot that is moving may have been redirected to a server that is not known yet.
      return callScript(keys, args);
    }
    if (!isRefused(error)) throw error;
    refuse(node, error.message);
    return callScript(keys, args);
  }

  /** In one write. The call did not run, because the function was missing. */
  async function loadAndCall(node: RedisNode, keys: readonly string[], args: readonly Buffer[]) {
    const [loaded, reply] = await redis.gather(() => {
      const load = node.client?.call('function', 'LOAD', library);
      return Promise.all([load?.catch(toError), callFunction(keys, args).catch(toError)]);
    });
    const isLoaded = !(loaded instanceof Error) || / already exists$/.test(loaded.message);
    if (Buffer.isBuffer(reply)) accept(node);
    else if (!isLoaded && isMissing(reply)) refuse(node, loaded.message);
    return reply;
  }

  function callFunction(keys: readonly string[], args: readonly Buffer[]): Promise<Buffer> {
    return commands.callBuffer('fcall', name, keys.length, ...keys, ...args) as Promise<Buffer>;
  }

  function callScript(keys: readonly string[], args: readonly Buffer[]): Promise<Buffer> {
    return commands.decideKeysByScriptBuffer(keys.length, ...keys, ...args);
  }

  function accept(node: RedisNode): void {
    if (refusals.delete(node)) report();
  }

  function refuse(node: RedisNode, reason: string): void {
    refusals.set(node, { reason, retryAtMs: performance.now() + retryMs });
    report();
  }

  function report(): void {
    // A server that is no longer a master of the Cluster does not count.
    for (const node of refusals.keys()) if (!redis.nodes().includes(node)) refusals.delete(node);
    const [first] = refusals.values();
    if (first?.reason === reported) return;
    reported = first?.reason;
    onRefusal(reported);
  }
}

function isMissing({ message }: Error): boolean {
  return message.startsWith('ERR Function not found');
}

/** The server does not run functions for this user, or is too old for them. The function did not run. */
function isRefused({ message }: Error): boolean {
  return message.startsWith('NOPERM ') || message.startsWith('ERR unknown command');
}

function toError(error: Error): Error {
  return error;
}

declare module 'ioredis' {
  interface RedisCommander<Context> {
    decideKeysByScriptBuffer(...countKeysAndArgs: (number | string | Buffer)[]): Result<Buffer, Context>;
  }
}
