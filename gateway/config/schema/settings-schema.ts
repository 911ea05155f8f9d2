import { isIP } from 'node:net';
import * as z from 'zod';
import { settingsShapes } from '../../capabilities/lists/schemas.ts';
import { keyListSchema } from '../../keys/key-schema.ts';
import { limit } from '../../keys/limits/limits-schema.ts';
import { planSchema } from '../../keys/plans/plan-schema.ts';
import { isAddressOrRange } from '../../shared/addresses/address-ranges.ts';
import { parseRedisUrl } from '../../shared/addresses/redis-url.ts';
import {
  agePattern,
  durationPattern,
  formatAge,
  formatDuration,
  parseDuration,
  timeoutPattern,
} from '../../shared/schema/dates-and-durations.ts';
import { marks } from '../../shared/schema/marks.ts';
import {
  digestOf,
  durationAsMs,
  expects,
  fields,
  flag,
  givenName,
  list,
  ownPath,
  percent,
  text,
  wholeNumber,
  word,
} from '../../shared/schema/schema-parts.ts';
import { defaultBounds } from '../../shared/timeouts-and-sizes.ts';
import { configSizes } from '../config-sizes.ts';
import { defaults } from './defaults.ts';

const bodyBytesMax = 1_073_741_824;
const portMax = 65_535;

const duration = durationAsMs(
  z
    .string(expects('a duration such as 60s, 5m or 24h'))
    .regex(durationPattern, expects('a duration such as 60s, 5m or 24h')),
);

const planName = givenName(
  'a plan name of 1 to 64 of the characters A-Z a-z 0-9 _ -',
  /^[A-Za-z0-9_-]{1,64}$/,
);

/** For connections on which the gateway is the TLS client. */
const pemFiles = {
  ca: text('the path of a PEM file')
    .optional()
    .describe('A PEM file with the trusted authorities, which replace the authorities of Node.')
    .register(marks, { file: true }),
  cert: text('the path of a PEM file')
    .optional()
    .describe('A PEM file with the certificate of the gateway, followed by its chain.')
    .register(marks, { file: true }),
  // Without the mark `secret`, reports show the lines of `upstream`. A key in place of its path is masked in every setting, by `keysField` of
  // `show-line.ts`.
  key: text('the path of a PEM file')
    .optional()
    .describe('A PEM file with the unencrypted private key of cert.')
    .register(marks, { file: true }),
};

const upstream = fields('a mapping with url', {
  url: text('an http or https URL such as http://backend:3000, without a path')
    .refine(isOriginUrl, expects('an http or https URL such as http://backend:3000, without a path'))
    .transform((written) => new URL(written).origin)
    .describe('The address of the upstream. Every IP address of its host is a target.'),
  tls: fields('a mapping with ca, serverName, cert and key', {
    ca: pemFiles.ca,
    serverName: text('a host name or an address', /^[A-Za-z0-9._:-]{1,253}$/)
      .optional()
      .describe('The name that the certificate of a target must have. The default is the host of url.'),
    cert: pemFiles.cert,
    key: pemFiles.key,
  })
    .optional()
    .describe(
      'TLS settings for an https url. The certificate of a target is always verified. New content of the files needs no restart.',
    ),
  health: text('a path such as /healthz', /^\/[!-~]*$/)
    .optional()
    .describe(
      'The path of the health check, which a healthy target answers with 2xx. Without a path, a target is healthy if it accepts a connection (with TLS, a handshake), which may miss a process that hangs.',
    ),
  host: word('keep', 'target')
    .default(defaults.upstreamHost)
    .describe(
      'The Host field that a target receives: the client’s Host (keep), or the host of url (target, also in health checks).',
    ),
  encodedSlashes: word('refuse', 'forward')
    .default(defaults.encodedSlashes)
    .describe(
      'What happens to a path with an escaped slash (%2F): 400 (refuse), or the target receives it (forward). The targets must read %2F as part of a segment.',
    ),
  timeouts: fields('a mapping with connect, headers and total', {
    connect: timeout(configSizes.connectTimeoutMaxMs)
      .optional()
      .describe(
        `The timeout for connecting to a target, including TLS. The default is ${formatDuration(defaultBounds.connectTimeoutMs)}.`,
      ),
    headers: timeout(configSizes.headersTimeoutMaxMs)
      .optional()
      .describe(
        `The timeout from the sent request to the end of the response head. The default is ${formatDuration(defaultBounds.upstreamHeadersTimeoutMs)}.`,
      ),
    total: timeout(configSizes.totalTimeoutMaxMs)
      .optional()
      .describe(
        `The timeout of the whole exchange, including retries, but not of a WebSocket. The default is ${formatDuration(defaultBounds.upstreamTotalTimeoutMs)}.`,
      ),
  })
    .prefault({})
    .describe('How long the gateway waits for a target.'),
  failing: fields('a mapping with share and failures', {
    share: percent
      .prefault(defaults.upstreamFailing.share)
      .describe('The smallest share of failed requests in a minute at which the upstream fails.'),
    failures: wholeNumber(1, configSizes.failuresMax)
      .default(defaults.upstreamFailing.failures)
      .describe('The smallest number of failed requests in a minute at which the upstream fails.'),
  })
    .prefault({})
    .describe(
      'When the gateway reports that the upstream fails (event upstream.failing). A request fails if it ends with 5xx or is cut off because of the upstream. Each gateway counts its own requests. Both bounds must be reached.',
    ),
});

const listenerTls = fields('a mapping with cert and key', {
  cert: text('the path of a PEM file')
    .describe('A PEM file with the certificate, followed by its chain.')
    .register(marks, { file: true }),
  key: text('the path of a PEM file')
    .describe('A PEM file with the unencrypted private key.')
    .register(marks, { secret: true }),
})
  .optional()
  .describe(
    'The certificate and private key of the listener. Without them, the listener does not use TLS. New content of the two files needs no restart.',
  );

export const adminTokenSchema = fields('a token: a mapping with name, sha256 and may', {
  name: givenName('1 to 64 of the characters A-Z a-z 0-9 . _ @ -', /^[A-Za-z0-9._@-]{1,64}$/).describe(
    'The name of the token’s owner, for the record of changes.',
  ),
  sha256: digestOf('token'),
  may: word('read', 'write').describe('Whether the token may only `read`, or also `write`.'),
});

const hostNamePattern = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$/;
const hostName = text('a host name such as gateway.internal, without a port', hostNamePattern);

const redisUser = text('a user name without blanks', /^\S{1,256}$/).register(marks, { secret: true });

const passwordFile = text('the path of a file with the password').register(marks, { secret: true });

/** A letter first, because JavaScript puts numeric names first in an object, and the first upstream is the default. */
const upstreamName = givenName(
  'an upstream name of 1 to 64 of the characters A-Z a-z 0-9 _ -, a letter first',
  /^[A-Za-z][A-Za-z0-9_-]{0,63}$/,
);

const keySources = fields('a mapping with file and directory', {
  file: text('the path of the keys file').optional().describe('The keys file.'),
  directory: flag()
    .default(false)
    .describe(
      'Whether the admin API can issue keys, which are stored in Redis. Needs `redis`. A change needs a restart.',
    ),
})
  .refine(
    ({ file, directory }) => file !== undefined || directory,
    expects('a mapping with file, or with `directory: true`, or with both'),
  )
  .meta({ anyOf: [{ required: ['file'] }, { required: ['directory'] }] });

/** Ignores all other settings, which may be invalid. */
export const adminAddressSchema = z.object({ admin: z.object(address(defaults.admin)).prefault({}) });

export const settingsSchema = fields('a mapping of settings', {
  environment: text('a word of A-Z a-z 0-9 . _ -, such as production', /^[A-Za-z0-9._-]{1,64}$/).describe(
    'The name of this environment.',
  ),
  baseUrl: text('an http or https URL such as https://api.example.com/v1, without user, query or fragment')
    .refine(
      isBaseUrl,
      expects('an http or https URL such as https://api.example.com/v1, without user, query or fragment'),
    )
    .describe('The public URL of the API. Its path is the prefix of every operation.'),
  workers: z
    .union(
      [wholeNumber(1, configSizes.workersMax), z.literal('auto')],
      expects(`a whole number from 1 to ${configSizes.workersMax}, or auto`),
    )
    .default(defaults.workers)
    .describe(
      'The number of processes that serve requests. With auto, the gateway starts one process for each available CPU. Any value except 1 needs `redis`. A change needs a restart.',
    ),
  listen: fields('a mapping with host, port and tls', address(defaults.listen))
    .prefault({})
    .describe('The public listener. A change of host or port, and switching TLS on or off, need a restart.'),
  admin: fields('a mapping with host, port, tls, tokens and hosts', {
    ...address(defaults.admin),
    tokens: list(adminTokenSchema, 'a list of tokens, each with name, sha256 and may')
      .max(configSizes.adminTokensMax, expects(`a list of at most ${configSizes.adminTokensMax} tokens`))
      .default([])
      .describe(
        'The tokens of the admin API, which answers 403 if this list is empty. `tollgate admin token` makes a token. Names and digests are unique. A change needs no restart.',
      ),
    hosts: list(hostName, 'a list of host names')
      .max(configSizes.adminHostsMax, expects(`a list of at most ${configSizes.adminHostsMax} names`))
      .default([])
      .describe(
        'The host names by which clients may call the admin API and open the pages, besides localhost and IP addresses. A request with any other name in Host gets 421, against DNS rebinding. `/healthz`, `/readyz` and `/metrics` accept every name. A change needs no restart.',
      )
      .transform((hosts) => hosts.map((host) => host.toLowerCase())),
  })
    .prefault({})
    .describe(
      'The listener of the admin API and the operators’ pages. A change of host or port, and switching TLS on or off, need a restart.',
    ),
  redis: fields('a mapping with url, cluster or sentinel', {
    url: readAsRedisUrl(
      text(
        'a URL such as redis://redis:6379, with %20 for a blank, or empty for the memory store',
        /^(rediss?:\/\/\S*)?$/,
      ),
    )
      .register(marks, { secretInUrl: 'credentials' })
      .optional()
      .describe(
        'The URL of a single Redis server. rediss:// uses TLS. The URL may contain the user and the password, with %2F for /, %3F for ?, %23 for #, %40 for @ and %25 for %. After its host, it may have the number of a database (/2), and the parameters db, username, password and family (?family=6 for IPv6). Every other URL is refused.',
      ),
    cluster: list(
      readAsRedisUrl(
        text(
          'a URL such as redis://redis-1:6379, without user, password and database; write `username` and `passwordFile` beside `cluster`',
          /^rediss?:\/\/[^\s@/?#]+\/?$/,
        ),
      ).register(marks, { secretInUrl: 'credentials' }),
      'a list of URLs such as redis://redis-1:6379',
    )
      .min(1, expects('a list with at least one URL'))
      .optional()
      .describe(
        'The URLs of one or more servers of a Redis Cluster. The gateway asks them for the other servers. rediss:// uses TLS.',
      ),
    sentinel: fields('a mapping with name and hosts', {
      name: text(
        'the name of the master in the configuration of the Sentinels',
        /^[A-Za-z0-9._-]{1,100}$/,
      ).describe('The name of the master in the configuration of the Sentinels.'),
      hosts: list(
        text(
          'host and port such as sentinel-1:26379',
          /^(?:\[[0-9A-Fa-f:.]+\]|[^\s:/?#@[\]]+):\d{1,5}$/,
        ).refine(
          (host) => parseRedisUrl(`redis://${host}`).fault === undefined,
          expects('host and port such as sentinel-1:26379, with a port from 1 to 65535'),
        ),
        'a list of hosts with ports such as sentinel-1:26379',
      )
        .min(1, expects('a list with at least one host'))
        .describe('The addresses of one or more Sentinels. The gateway asks them for the other Sentinels.'),
      tls: flag().default(false).describe('Whether Sentinels and servers use TLS.'),
      username: redisUser.optional().describe('The ACL user of the Sentinels, if they need one.'),
      passwordFile: passwordFile.optional().describe('A file with the password for the Sentinels.'),
    })
      .optional()
      .describe('The Sentinels that monitor Redis. The gateway asks them for the current master.'),
    username: redisUser.optional().describe('The ACL user. Its password is in passwordFile or in url.'),
    passwordFile: passwordFile.optional().describe('A file with the password.'),
    ...pemFiles,
    prefix: text('1 to 100 of the characters A-Z a-z 0-9 . _ : -', /^[A-Za-z0-9._:-]{1,100}$/)
      .optional()
      .describe(
        'The beginning of the names of all keys in Redis. The default is `tollgate-` and the name of the environment.',
      ),
    onFailure: word('local', 'refuse')
      .default(defaults.redisOnFailure)
      .describe(
        'What each process does while Redis is unavailable: it counts by itself (local), or answers requests of keys with 503 (refuse). A key of the directory that the process has not cached gets 503 in both cases.',
      ),
  })
    .optional()
    .describe(
      'The Redis that stores the counts. With TLS, the certificate of a server must be valid for the name or address to which the gateway connects. Without this setting or with an empty url, counts are kept in memory, and settings that need Redis are refused. A change of this setting or of the files that it names needs a restart.',
    ),
  upstream: upstream
    .optional()
    .describe('A single upstream, with the name `default`. Either `upstream` or `upstreams` is required.'),
  upstreams: z
    .record(upstreamName, upstream, expects('a mapping of names to upstreams'))
    .optional()
    .describe(
      'Several upstreams by name, in place of `upstream`. An operation chooses its upstream by x-upstream. The default is the first upstream.',
    ),
  plans: z
    .record(planName, planSchema, expects('a mapping of plan names to limits'))
    .describe(
      'The plans by name: limits and operations, or `custom` or `custom: true` if each key has its own limits. Limits count units: a request costs 1, or the `x-cost` of its operation.',
    ),
  keys: z
    .union(
      [text('the path of the keys file'), keyListSchema, keySources],
      expects('the path of the keys file, a list of keys, or a mapping with file and directory'),
    )
    .describe('The path of the keys file; or the list of keys; or a mapping with file and directory.'),
  api: text('the path of the OpenAPI document')
    .register(marks, { file: true })
    .optional()
    .describe(
      'The path of the OpenAPI document. Without a document, a single operation `any` has every method and path below the base URL.',
    ),
  ...settingsShapes,
  docsPath: ownPath('/docs')
    .optional()
    .describe(
      'The path of the API reference, which everyone can read. It also switches on /openapi.json. Neither path gets the prefix of the base URL. Needs `api`.',
    ),
  bans: fields('a mapping with after, within, for, max and showReason', {
    after: limit
      .default(defaults.bans.after)
      .describe(
        'The number of refusals in the time of `within` after which a key is banned. Refusals by `concurrent` do not count.',
      ),
    within: duration
      .prefault(defaults.bans.within)
      .describe('The time in which refusals are counted, from the first refusal on.'),
    for: duration
      .prefault(defaults.bans.for)
      .describe('The length of the first ban. Each further ban in a row is twice as long, up to max.'),
    max: duration
      .prefault(defaults.bans.max)
      .describe('The maximum length of a ban. An operator may ban a key for longer.'),
    showReason: flag()
      .default(defaults.bans.showReason)
      .describe('Whether the response to a key that an operator has banned shows the stated reason.'),
  })
    .prefault({})
    .describe('When a key is banned that keeps sending after refusals.'),
  addressBucket: fields('a mapping with perMinute', {
    perMinute: limit
      .default(defaults.addressBucket.perMinute)
      .describe(
        'The number of requests without a valid key that one client address may send in a minute. All addresses of an IPv6 network /64 count as one.',
      ),
  })
    .prefault({})
    .describe('The limit on requests without a valid key.'),
  bodyBytesMax: wholeNumber(1, bodyBytesMax)
    .default(defaults.bodyBytesMax)
    .describe('The maximum size of the body of a request to the API, in octets.'),
  usage: fields('a mapping with keepDays', {
    keepDays: wholeNumber(0, configSizes.usageKeepDaysMax)
      .default(defaults.usage.keepDays)
      .describe(
        'The number of days for which Redis at least keeps the figures of each key and minute. Redis keeps the figures of all requests together for at least 15 days. Without Redis, a process keeps one day. 0 switches the usage record off. A change needs a restart.',
      ),
  })
    .prefault({})
    .describe('The usage record of each key.'),
  cors: fields('a mapping with origins', {
    origins: list(
      text('an origin such as https://app.example.com, without a path').refine(
        isOrigin,
        expects('an origin such as https://app.example.com, without a path'),
      ),
      'a list of origins such as https://app.example.com',
    ).describe('The origins, each with its scheme, and with its port if it is not the default.'),
  })
    .optional()
    .describe(
      'The origins whose pages may call the API from a browser. Without this setting, no page of another origin may.',
    ),
  hsts: fields('a mapping with maxAge and includeSubDomains', {
    maxAge: durationAsMs(
      z
        .string(expects('a duration such as 365d, or 0s'))
        .regex(agePattern, expects('a duration such as 365d, or 0s')),
      formatAge,
    ).describe('The time for which a browser uses only https. 0s switches this off in browsers.'),
    includeSubDomains: flag().default(false).describe('Whether the rule also applies to all subdomains.'),
  })
    .optional()
    .describe('The Strict-Transport-Security field of responses over TLS (`listen.tls`).'),
  trustedProxies: list(
    text('an address or a range such as 10.0.0.0/8', /^.*$/s).refine(
      (entry) => entry === '' || isAddressOrRange(entry),
      expects('an address or a range such as 10.0.0.0/8'),
    ),
    'a list of addresses and ranges',
  )
    .default([...defaults.trustedProxies])
    .describe(
      'The peers whose X-Forwarded-* fields the gateway accepts. An empty entry, such as an empty variable, is ignored.',
    )
    .transform((entries) => entries.filter((entry) => entry !== '')),
});

/** `/settings` shows them as the configuration states them. */
export const statedSettings = settingsSchema.omit({ plans: true, keys: true });

export const settingNames = [settingsSchema, keySources].flatMap(({ shape }) => Object.keys(shape));

/** At any depth. Computed at the first call, which takes some milliseconds. */
export function memberNames(): readonly string[] {
  names ??= [...new Set(namesIn(z.toJSONSchema(settingsSchema, { io: 'input' })))];
  return names;
}
let names: readonly string[] | undefined;

/** The members of every mapping in a JSON Schema. */
function namesIn(schema: unknown): readonly string[] {
  const { properties, ...rest } = Object(schema);
  const inside = [...Object.values(properties ?? {}), ...Object.values(rest)].filter(
    (part) => typeof part === 'object',
  );
  return [...Object.keys(properties ?? {}), ...inside.flatMap(namesIn)];
}

export type RawSettings = z.output<typeof settingsSchema>;

export function hasDirectory({ keys }: Pick<RawSettings, 'keys'>): boolean {
  return typeof keys === 'object' && 'directory' in keys && keys.directory;
}

/** An empty URL counts as no Redis. */
export function hasRedis({ redis }: Pick<RawSettings, 'redis'>): boolean {
  return redis !== undefined && redis.url !== '';
}
export type RawUpstream = z.output<typeof upstream>;

function timeout(maxMs: number) {
  const minMs = configSizes.timeoutMinMs;
  const what = expects(
    `a duration from ${formatDuration(minMs)} to ${formatDuration(maxMs)} such as 500ms or 2s`,
  );
  return durationAsMs(
    z
      .string(what)
      .regex(timeoutPattern, { ...what, abort: true })
      .refine((written) => parseDuration(written) >= minMs && parseDuration(written) <= maxMs, what),
  );
}

function address(fallback: { readonly host: string; readonly port: number }) {
  return {
    host: text('an address such as 127.0.0.1 or ::1, or a host name', /^\S+$/)
      .refine(isHost, expects('an address such as 127.0.0.1 or ::1, or a host name'))
      .default(fallback.host)
      .describe('The address on which the gateway listens.'),
    port: wholeNumber(0, portMax).default(fallback.port).describe('The TCP port.'),
    tls: listenerTls,
  };
}

function isBaseUrl(value: string): boolean {
  const url = URL.parse(value);
  return url !== null && /^https?:$/.test(url.protocol) && !/[?#@]/.test(value) && isPlainPath(url.pathname);
}

/** The gateway refuses requests with empty path segments or unnecessary percent-encoding. */
function isPlainPath(path: string): boolean {
  return path === '/' || /^(\/[A-Za-z0-9._~!$&'()*+,=:@-]+)+\/?$/.test(path);
}

/** By the same parser as for the connection. */
function readAsRedisUrl(url: ReturnType<typeof text>) {
  return url.superRefine((value, { addIssue }) => {
    const { fault } = value === '' ? {} : parseRedisUrl(value);
    if (fault !== undefined) addIssue(fault);
  });
}

/** The system's resolver reads host names. */
function isHost(value: string): boolean {
  return isIP(value) !== 0 || hostNamePattern.test(value);
}

function isOriginUrl(value: string): boolean {
  const url = URL.parse(value);
  return (
    url !== null &&
    /^https?:$/.test(url.protocol) &&
    url.pathname === '/' &&
    url.port !== '0' &&
    !/[?#@]/.test(value)
  );
}

/** As browsers send `Origin`: lower case, no default port, no final slash. */
function isOrigin(value: string): boolean {
  const url = URL.parse(value);
  return url !== null && /^https?:$/.test(url.protocol) && url.origin === value;
}
