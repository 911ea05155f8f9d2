import { bareHostname } from './address-group.ts';

export interface RedisServer {
  readonly isTls: boolean;
  readonly host: string;
  readonly port: number;
  readonly username: string | undefined;
  /** A secret. A user without a password has an empty password. */
  readonly password: string | undefined;
  readonly db: number;
  /** 4, 6, or 0 for both. */
  readonly family: number;
}

/** A `fault` ends a sentence that begins with the name of the setting. A fault contains no part of the URL. */
export type ParsedRedisUrl =
  | { readonly server: RedisServer; readonly fault?: undefined }
  | { readonly server?: undefined; readonly fault: string };

const parameterNames = ['username', 'password', 'db', 'family'];

const remedy =
  'in a user or a password, write %2F for /, %3F for ?, %23 for #, %40 for @ and %25 for %, or put the password into a file (`passwordFile`)';

/**
 * The check of the configuration and the connection use this function, so a checked URL never fails later. It refuses every URL in which a
 * piece of a password may have become the host, because hosts are looked up and logged.
 */
export function parseRedisUrl(text: string): ParsedRedisUrl {
  const url = URL.parse(text);
  if (url === null || !/^rediss?:$/.test(url.protocol) || url.hostname === '' || url.port === '0') {
    return { fault: `must be a URL such as redis://redis:6379, with a port from 1 to 65535; ${remedy}` };
  }
  const { searchParams } = url;
  const names = [...searchParams.keys()];
  const db = url.pathname.length > 1 ? url.pathname.slice(1) : (searchParams.get('db') ?? '0');
  const family = searchParams.get('family') ?? '0';
  if (!/^\d{1,4}$/.test(db) || url.hash !== '') {
    return { fault: `may have only the number of a database after its host; ${remedy}` };
  }
  if (!/^[046]$/.test(family) || names.some((name) => !parameterNames.includes(name))) {
    const known = parameterNames.join(', ');
    return { fault: `may have only the parameters ${known}, where family is 0, 4 or 6; ${remedy}` };
  }
  try {
    const username = decodeURIComponent(url.username) || searchParams.get('username') || undefined;
    const password = decodeURIComponent(url.password) || searchParams.get('password') || undefined;
    return {
      server: {
        isTls: url.protocol === 'rediss:',
        host: bareHostname(url),
        port: Number(url.port || 6379),
        username,
        password: username === undefined ? password : (password ?? ''),
        db: Number(db),
        family: Number(family),
      },
    };
  } catch {
    return { fault: `has a % that is not followed by two hex digits of UTF-8 text; ${remedy}` };
  }
}

/** @throws for a URL with a fault, which the check of the configuration refuses */
export function redisServerOf(text: string): RedisServer {
  const { server, fault } = parseRedisUrl(text);
  if (server === undefined) throw new Error(`the URL of Redis ${fault}`);
  return server;
}
