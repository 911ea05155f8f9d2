import { settingsParts } from '../../capabilities/lists/configuration.ts';
/** The values that `tollgate init` writes into a new configuration. */
export interface NewConfig {
  readonly upstream: string;
  /** The path of the API document, relative to the configuration. */
  readonly api: string | undefined;
  /** The base path of the API document's paths, such as `/v1`; empty if there is none. */
  readonly basePath: string;
  /** False if a path of the API conflicts with `/limits` or the API reference, which are then switched off. */
  readonly hasOwnPaths: boolean;
  readonly adminTokenSha256: string;
  readonly key: { readonly id: string; readonly sha256: string };
}

/**
 * The variables of a new configuration and their defaults. The file reads only variables that begin with `TOLLGATE_`, because other programs
 * export variables such as `HOST` and `PORT`. The image sets the variables of the hosts.
 */
const defaults = { TOLLGATE_PORT: '8080', TOLLGATE_ADMIN_PORT: '9090' } as const;
const [port, adminPort] = Object.entries(defaults).map(([name, value]) => `\${${name}:-${value}}`);

/** The ports of a new configuration with the variables of this environment. */
export function portsIn(env: NodeJS.ProcessEnv): { readonly listen: string; readonly admin: string } {
  const portOf = (name: keyof typeof defaults) => env[name] || defaults[name];
  return { listen: portOf('TOLLGATE_PORT'), admin: portOf('TOLLGATE_ADMIN_PORT') };
}

export function configText(config: NewConfig): string {
  const { upstream, api, basePath, hasOwnPaths, adminTokenSha256, key } = config;
  const own = hasOwnPaths ? '' : '# ';
  const isSecure = upstream.startsWith('https:');
  return `# The gateway reloads this file when you save it. \`tollgate check\` finds mistakes before you save.
environment: local
# The URL that clients call. The gateway forwards paths unchanged.
baseUrl: http://127.0.0.1:${port}${basePath}

listen:
  host: \${TOLLGATE_HOST:-127.0.0.1}
  port: ${port}
admin:
  host: \${TOLLGATE_ADMIN_HOST:-127.0.0.1}
  port: ${adminPort}
  tokens: # tokens for the operators' pages and commands
    - { name: operator, may: write, sha256: ${adminTokenSha256} }

# Your service. Without \`health\`, the service is healthy if it accepts a connection.
upstream:
  url: ${upstream}
  # health: /healthz
  ${isSecure ? '' : '# '}host: target # your service gets its own host name in the Host field, and not the gateway's

plans:
  free:       { perMinute: 60,   perDay: 1000 }
  pro:        { perMinute: 300,  perDay: 10000 }
  business:   { perMinute: 1000, perDay: 100000 }
  enterprise: custom # each key states its own limits

# With Redis, several processes share their counts. Without Redis, the counts are in the memory of this process, and
# some settings are refused, because a restart would lose what they keep.
# redis: { url: redis://127.0.0.1:6379 }

${
  api === undefined
    ? '# The OpenAPI document that lists the operations. Without it, every method and path is forwarded.\n# api: ./openapi.yaml'
    : `# The OpenAPI document that lists the operations. All other requests get 404 or 405.\napi: ${JSON.stringify(api)}`
}

${settingsParts.flatMap(({ initLine }) => (initLine === undefined ? [] : [`${own}${initLine}\n`])).join('')}${api === undefined ? '# ' : own}docsPath: /docs # the path of the API reference; also switches on /openapi.json

keys: # \`tollgate keys create\` adds a key, and \`tollgate keys revoke\` disables a key
  - id: ${key.id}
    plan: free
    secrets:
      - sha256: ${key.sha256}
`;
}
