/** The values that differ between new configurations. */
export interface NewConfig {
  readonly upstream: string;
  /** The path of the API document, relative to the configuration. */
  readonly api: string | undefined;
  /** The base path of the API document's paths, such as `/v1`. Empty if they have none. */
  readonly basePath: string;
  /**
   * Whether the gateway serves `/limits` and the API reference. They are switched off if a path of the API conflicts with them.
   */
  readonly hasOwnPaths: boolean;
  readonly adminTokenSha256: string;
  readonly key: { readonly id: string; readonly sha256: string };
}

/** Makes the text of the configuration that `tollgate init` writes. */
export function configText(config: NewConfig): string {
  const { upstream, api, basePath, hasOwnPaths, adminTokenSha256, key } = config;
  const own = hasOwnPaths ? '' : '# ';
  const isSecure = upstream.startsWith('https:');
  return `# The gateway reads this file again when you save it. \`tollgate check\` finds mistakes before that.
environment: local
# What clients call. Paths are forwarded unchanged.
baseUrl: http://127.0.0.1:\${PORT:-8080}${basePath}

listen:
  host: \${HOST:-127.0.0.1}
  port: \${PORT:-8080}
admin:
  host: \${ADMIN_HOST:-127.0.0.1}
  port: \${ADMIN_PORT:-9090}
  tokens: # for the operators' pages and commands
    - { name: first, may: write, sha256: ${adminTokenSha256} }

# Your service. Without \`health\` it is healthy when it accepts a connection.
upstream:
  url: ${upstream}
  # health: /healthz
  ${isSecure ? '' : '# '}host: target # your service reads its own name in Host, and not the gateway's

plans:
  free:       { perMinute: 60,   perDay: 1000 }
  pro:        { perMinute: 300,  perDay: 10000 }
  business:   { perMinute: 1000, perDay: 100000 }
  enterprise: custom # each key states its own limits

# Several processes count together in a Redis. Without it, the counts are in the memory of this process.
# redis: { url: redis://127.0.0.1:6379 }

${
  api === undefined
    ? '# An OpenAPI document lists what may be called. Without it, every method and path is forwarded.\n# api: ./openapi.yaml'
    : `# Only what this OpenAPI document lists may be called.\napi: ${JSON.stringify(api)}`
}

${own}limitsPath: /limits # where a key reads its own limits
${api === undefined ? '# ' : own}docsPath: /docs # the API reference, and /openapi.json

keys: # \`tollgate keys create\` adds one, \`tollgate keys revoke\` ends one
  - id: ${key.id}
    plan: free
    secrets:
      - sha256: ${key.sha256}
`;
}
