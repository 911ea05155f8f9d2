import type { RedisSettings } from '../shared/model.ts';

/** The place where an operator looks when Redis is away. */
export interface FaultPlace {
  /** Without credentials. */
  readonly address: string;
  /** The setting that the reason is about. */
  readonly setting: string;
}

/** Redis answers NOAUTH with a text about its protocol. */
export function plainReason(message: string): string {
  return message.startsWith('NOAUTH') ? 'NOAUTH Redis requires a password' : message;
}

/** The reason of an outage with the place to look at, for operators. */
export function reasonWithPlace(reason: string, { address, setting }: FaultPlace): string {
  const at = reason.includes(address) ? '' : ` at ${address}`;
  return `${reason.replace(/\.$/, '')}${at}; check ${setting}`;
}

/** @param reason the error of the connection, or of the server */
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
