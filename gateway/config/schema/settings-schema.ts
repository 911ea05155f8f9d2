import ipaddr from 'ipaddr.js';
import * as z from 'zod';
import { keyListSchema, limit } from '../../keys/key-schema.ts';
import { planSchema } from '../../keys/plan-schema.ts';
import {
  agePattern,
  durationPattern,
  formatDuration,
  parseDuration,
  timeoutPattern,
} from '../../shared/schema/dates-and-durations.ts';
import {
  digestOf,
  expects,
  fields,
  flag,
  givenName,
  list,
  text,
  wholeNumber,
  word,
} from '../../shared/schema/schema-parts.ts';
import { defaultBounds } from '../../shared/timeouts-and-sizes.ts';
import { configSizes } from '../config-sizes.ts';
import { defaults } from './defaults.ts';

const bodyBytesMax = 1_073_741_824;
const portMax = 65_535;

const duration = z
  .string(expects('a duration such as 60s, 5m or 24h'))
  .regex(durationPattern, expects('a duration such as 60s, 5m or 24h'))
  .transform(parseDuration);

const planName = givenName(
  'a plan name of 1 to 64 of the characters A-Z a-z 0-9 _ -',
  /^[A-Za-z0-9_-]{1,64}$/,
);

/** The TLS files of a connection on which the gateway is the client. */
const pemFiles = {
  ca: text('the path of a PEM file')
    .optional()
    .describe('The authorities that are trusted, in place of those of Node; PEM, relative to this file.'),
  cert: text('the path of a PEM file')
    .optional()
    .describe('What the gateway authenticates itself with, then its chain; PEM, relative to this file.'),
  key: text('the path of a PEM file')
    .optional()
    .describe('The private key of cert, not encrypted; PEM, relative to this file.'),
};

const upstream = fields('a mapping with url', {
  url: text('an http or https URL such as http://backend:3000, without a path')
    .refine(isOriginUrl, expects('an http or https URL such as http://backend:3000, without a path'))
    .describe('Every address its host resolves to is a target.'),
  tls: fields('a mapping with ca, serverName, cert and key', {
    ca: pemFiles.ca,
    serverName: text('a host name or an address', /^[A-Za-z0-9._:-]{1,253}$/)
      .optional()
      .describe('Whom a target’s certificate must be for; absent: the host of url.'),
    cert: pemFiles.cert,
    key: pemFiles.key,
  })
    .optional()
    .describe('For an https url. The certificate of a target is always verified.'),
  health: text('a path such as /healthz', /^\/[!-~]*$/)
    .default(defaults.upstreamHealth)
    .describe('The path that a healthy target answers with 2xx.'),
  host: word('keep', 'target')
    .default(defaults.upstreamHost)
    .describe('What a target reads in Host: what the client sent, or the host of url.'),
  timeouts: fields('a mapping with connect, headers and total', {
    connect: timeout(configSizes.connectTimeoutMaxMs)
      .optional()
      .describe(
        `To connect to a target, TLS included; ${formatDuration(defaultBounds.connectTimeoutMs)} if absent.`,
      ),
    headers: timeout(configSizes.headersTimeoutMaxMs)
      .optional()
      .describe(
        `From the sent request to the response's first byte; ${formatDuration(defaultBounds.upstreamHeadersTimeoutMs)} if absent.`,
      ),
    total: timeout(configSizes.totalTimeoutMaxMs)
      .optional()
      .describe(
        `The whole exchange, retries included; ${formatDuration(defaultBounds.upstreamTotalTimeoutMs)} if absent.`,
      ),
  }).prefault({}),
});

export const adminTokenSchema = fields('a token: a mapping with name, sha256 and may', {
  name: givenName('1 to 64 of the characters A-Z a-z 0-9 . _ @ -', /^[A-Za-z0-9._@-]{1,64}$/).describe(
    'Whose it is: every change says by whom it was made.',
  ),
  sha256: digestOf('token'),
  may: word('read', 'write').describe('Whether it may only read, or also change keys.'),
});

const hostName = text(
  'a host name such as gateway.internal, without a port',
  /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$/,
);

const redisUser = text('a user name without blanks', /^\S{1,256}$/);

/**
 * The name of an upstream. The name begins with a letter, because JavaScript puts numeric names first in an object, and the first
 * upstream is the default.
 */
const upstreamName = givenName(
  'an upstream name of 1 to 64 of the characters A-Z a-z 0-9 _ -, a letter first',
  /^[A-Za-z][A-Za-z0-9_-]{0,63}$/,
);

const keySources = fields('a mapping with file and directory', {
  file: text('the path of the keys file').optional().describe('The keys file, relative to this file.'),
  directory: flag()
    .default(false)
    .describe(
      'Whether keys are also issued while the gateway runs, by its admin API, and kept in Redis beside the counts. A change needs a restart.',
    ),
})
  .refine(
    ({ file, directory }) => file !== undefined || directory,
    expects('a mapping with file, or with `directory: true`, or with both'),
  )
  .meta({ anyOf: [{ required: ['file'] }, { required: ['directory'] }] });

/** The schema of the admin listener's address alone, so that other settings may be invalid. */
export const adminAddressSchema = z.object({ admin: z.object(address(defaults.admin)).prefault({}) });

export const settingsSchema = fields('a mapping of settings', {
  environment: text('a word of A-Z a-z 0-9 . _ -, such as production', /^[A-Za-z0-9._-]{1,64}$/).describe(
    'The name of this environment, for logs and the Redis prefix.',
  ),
  baseUrl: text('an http or https URL such as https://api.example.com/v1, without user, query or fragment')
    .refine(
      isBaseUrl,
      expects('an http or https URL such as https://api.example.com/v1, without user, query or fragment'),
    )
    .describe('The public address; its path is the prefix of every operation.'),
  workers: z
    .union(
      [wholeNumber(1, configSizes.workersMax), z.literal('auto')],
      expects(`a whole number from 1 to ${configSizes.workersMax}, or auto`),
    )
    .default(defaults.workers)
    .describe(
      'How many processes serve requests; auto: as many as there are CPUs. More than one need Redis. A change needs a restart.',
    ),
  listen: fields('a mapping with host, port and tls', address(defaults.listen))
    .prefault({})
    .describe('The public listener; a change needs a restart.'),
  admin: fields('a mapping with host, port, tls, tokens and hosts', {
    ...address(defaults.admin),
    tokens: list(adminTokenSchema, 'a list of tokens, each with name, sha256 and may')
      .max(configSizes.adminTokensMax, expects(`a list of at most ${configSizes.adminTokensMax} tokens`))
      .default([])
      .describe('Who may use the admin API; `tollgate admin token` makes one. A change needs no restart.'),
    hosts: list(hostName, 'a list of host names')
      .max(configSizes.adminHostsMax, expects(`a list of at most ${configSizes.adminHostsMax} names`))
      .default([])
      .describe(
        'Names by which the admin API may be reached, beside localhost and addresses. A change needs no restart.',
      ),
  })
    .prefault({})
    .describe('The admin listener; a change of host, port or tls needs a restart.'),
  redis: fields('a mapping with url, cluster or sentinel', {
    url: text('a URL such as redis://redis:6379, or empty for the memory store', /^(rediss?:\/\/\S+)?$/)
      .optional()
      .describe('One server; rediss:// over TLS.'),
    cluster: list(
      text('a URL such as redis://redis-1:6379, without user and database', /^rediss?:\/\/[^\s@/?#]+\/?$/),
      'a list of URLs such as redis://redis-1:6379',
    )
      .min(1, expects('a list with at least one URL'))
      .optional()
      .describe('A Redis Cluster: some of its servers, which name the others; rediss:// over TLS.'),
    sentinel: fields('a mapping with name and hosts', {
      name: text('the name that Sentinels know the master by', /^[A-Za-z0-9._-]{1,100}$/),
      hosts: list(
        text('host and port such as sentinel-1:26379', /^(?:\[[0-9A-Fa-f:.]+\]|[^\s:/@[\]]+):\d{1,5}$/),
        'a list of hosts with ports such as sentinel-1:26379',
      )
        .min(1, expects('a list with at least one host'))
        .describe('Some of the Sentinels, which name the others.'),
      tls: flag().default(false).describe('Whether Sentinels and servers are reached over TLS.'),
      username: redisUser.optional().describe('Of the Sentinels themselves, where they want one.'),
      passwordFile: text('the path of a file with the password').optional(),
    })
      .optional()
      .describe('The master that Sentinels name.'),
    username: redisUser.optional().describe('The ACL user; its password is in passwordFile.'),
    passwordFile: text('the path of a file with the password')
      .optional()
      .describe('A file with the password, relative to this file.'),
    ...pemFiles,
    prefix: text('1 to 100 of the characters A-Z a-z 0-9 . _ : -', /^[A-Za-z0-9._:-]{1,100}$/).optional(),
    onFailure: word('local', 'refuse')
      .default(defaults.redisOnFailure)
      .describe('While Redis is away: count in this process, or answer 503.'),
  })
    .optional()
    .describe(
      'Absent, or with an empty url: the memory store. A change needs a restart, also one of the files that it names.',
    ),
  upstream: upstream.optional().describe('The one upstream; its name is `default`.'),
  upstreams: z
    .record(upstreamName, upstream, expects('a mapping of names to upstreams'))
    .optional()
    .describe('Several, by name, in place of `upstream`: x-upstream names one, the first is the default.'),
  plans: z
    .record(planName, planSchema, expects('a mapping of plan names to limits'))
    .describe(
      'By name: its limits and operations; `custom` or `custom: true` when each key states its own limits.',
    ),
  keys: z
    .union(
      [text('the path of the keys file'), keyListSchema, keySources],
      expects('the path of the keys file, a list of keys, or a mapping with file and directory'),
    )
    .describe(
      'The keys file, relative to this file, or the list itself, or a mapping with file and directory.',
    ),
  api: text('the path of the OpenAPI document')
    .optional()
    .describe(
      'The OpenAPI document, relative to this file; absent: every method and path below the base URL is one operation, `any`.',
    ),
  limitsPath: ownPath('/limits')
    .optional()
    .describe(
      'Where a key reads its own limits, a path of the listener, not below the base URL; absent: nowhere.',
    ),
  docsPath: ownPath('/docs')
    .optional()
    .describe(
      'Where the API reference is, which anybody may read, and /openapi.json with it; a path of the listener, not below the base URL; absent: nowhere.',
    ),
  bans: fields('a mapping with after, within, for and max', {
    after: limit.default(defaults.bans.after).describe('Refusals that ban a key …'),
    within: duration.prefault(defaults.bans.within).describe('… when they come within this time.'),
    for: duration.prefault(defaults.bans.for).describe('The first ban; each next one is twice as long …'),
    max: duration.prefault(defaults.bans.max).describe('… up to this.'),
  }).prefault({}),
  addressBucket: fields('a mapping with perMinute', {
    perMinute: limit.default(defaults.addressBucket.perMinute),
  })
    .prefault({})
    .describe('Requests without a valid key, per client address.'),
  bodyBytesMax: wholeNumber(1, bodyBytesMax)
    .default(defaults.bodyBytesMax)
    .describe('The largest request body.'),
  usage: fields('a mapping with keepDays', {
    keepDays: wholeNumber(0, configSizes.usageKeepDaysMax)
      .default(defaults.usage.keepDays)
      .describe(
        'For how many days each minute of each key is kept in Redis; without Redis it is one day. 0: nothing is recorded. A change needs a restart.',
      ),
  })
    .prefault({})
    .describe('The record of what each key asked for and got.'),
  cors: fields('a mapping with origins', {
    origins: list(
      text('an origin such as https://app.example.com, without a path').refine(
        isOrigin,
        expects('an origin such as https://app.example.com, without a path'),
      ),
      'a list of origins such as https://app.example.com',
    ),
  })
    .optional()
    .describe('Whose pages may call the API from a browser; absent: nobody’s.'),
  hsts: fields('a mapping with maxAge and includeSubDomains', {
    maxAge: z
      .string(expects('a duration such as 365d, or 0s'))
      .regex(agePattern, expects('a duration such as 365d, or 0s'))
      .transform(parseDuration)
      .describe('How long a browser remembers to use https only; 0s makes it forget.'),
    includeSubDomains: flag().default(false).describe('Whether that holds for all subdomains too.'),
  })
    .optional()
    .describe('Strict-Transport-Security on every response over TLS; absent: none of the gateway’s own.'),
  trustedProxies: list(
    text('an address or a range such as 10.0.0.0/8', /^.*$/s).refine(
      (entry) => entry === '' || isAddressOrRange(entry),
      expects('an address or a range such as 10.0.0.0/8'),
    ),
    'a list of addresses and ranges',
  )
    .default([...defaults.trustedProxies])
    .describe(
      'Peers whose X-Forwarded-* is believed; an empty entry, such as an unset variable leaves, is nobody.',
    ),
});

/** The names of all settings. */
export const settingNames = [settingsSchema, keySources].flatMap(({ shape }) => Object.keys(shape));

export type RawSettings = z.output<typeof settingsSchema>;
export type RawUpstream = z.output<typeof upstream>;

/** A path that the gateway serves itself. It contains only characters with a single spelling, which the request screen accepts. */
function ownPath(example: string) {
  return text(
    `a path such as ${example}, of A-Z a-z 0-9 . _ ~ - and slashes, without one at its end`,
    /^(?!.*\/\.{1,2}(?:\/|$))(?:\/[A-Za-z0-9._~-]+)+$/,
  );
}

function timeout(maxMs: number) {
  const minMs = configSizes.timeoutMinMs;
  const what = expects(
    `a duration from ${formatDuration(minMs)} to ${formatDuration(maxMs)} such as 500ms or 2s`,
  );
  return z
    .string(what)
    .regex(timeoutPattern, { ...what, abort: true })
    .refine((written) => parseDuration(written) >= minMs && parseDuration(written) <= maxMs, what)
    .transform(parseDuration);
}

function address(fallback: { readonly host: string; readonly port: number }) {
  return {
    host: text('an address or host name', /^\S+$/).default(fallback.host),
    port: wholeNumber(0, portMax).default(fallback.port),
    tls: fields('a mapping with cert and key', {
      cert: text('the path of a PEM file').describe(
        'The certificate, then its chain; PEM, relative to this file.',
      ),
      key: text('the path of a PEM file').describe(
        'Its private key, not encrypted; PEM, relative to this file.',
      ),
    })
      .optional()
      .describe(
        'Absent: without TLS. The content of the two files may change at any time; turning TLS on or off needs a restart.',
      ),
  };
}

function isBaseUrl(value: string): boolean {
  const url = URL.parse(value);
  return url !== null && /^https?:$/.test(url.protocol) && !/[?#@]/.test(value) && isPlainPath(url.pathname);
}

/** Whether requests can have this path prefix. The request screen refuses empty segments and needless escapes. */
function isPlainPath(path: string): boolean {
  return path === '/' || /^(\/[A-Za-z0-9._~!$&'()*+,=:@-]+)+\/?$/.test(path);
}

function isOriginUrl(value: string): boolean {
  const url = URL.parse(value);
  return url !== null && /^https?:$/.test(url.protocol) && url.pathname === '/' && !/[?#@]/.test(value);
}

/** Whether a value has the form that browsers send in `Origin`: lower case, no default port, no final slash. */
function isOrigin(value: string): boolean {
  const url = URL.parse(value);
  return url !== null && /^https?:$/.test(url.protocol) && url.origin === value;
}

function isAddressOrRange(value: string): boolean {
  const [host = '', prefix] = value.split('/');
  // The library also accepts forms such as 010.1, which other programs read as a different address.
  const isAddress = ipaddr.IPv4.isValidFourPartDecimal(host) || ipaddr.IPv6.isValid(host);
  return isAddress && (prefix === undefined || ipaddr.isValidCIDR(value));
}
