import type { RedisSettings } from '../shared/model.ts';

/** Where an operator looks when Redis is away. */
export interface FaultPlace {
  /** The configured addresses, without credentials. */
  readonly address: string;
  /** The setting that the reason is about. */
  readonly setting: string;
}

/** Returns the address and the setting to check. @param reason the error of the connection, or of the server */
export function faultPlaceOf(redis: RedisSettings, reason: string): FaultPlace {
  const { url, cluster = [], sentinel, password, username } = redis;
  const [address, form] =
    url !== undefined
      ? [new URL(url).host, 'redis.url']
      : sentinel !== undefined
        ? [`${sentinel.name} of ${sentinel.hosts.join(', ')}`, 'redis.sentinel']
        : [cluster.map((one) => new URL(one).host).join(', '), 'redis.cluster'];
  if (/^(?:NOAUTH|WRONGPASS|NOPERM)|invalid password|without any password/i.test(reason)) {
    const isInUrl = url !== undefined && new URL(url).password !== '';
    const user = username === undefined ? '' : 'redis.username, ';
    return { address, setting: isInUrl && password === undefined ? form : `${user}redis.passwordFile` };
  }
  return { address, setting: /certificate|SSL|TLS/i.test(reason) ? `${form}, redis.ca` : form };
}
