import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { libraryWithChapters } from '../../../gateway/quota/calls/library.ts';
import { freePort } from '../../support/free-port.ts';
import { findProgram } from '../find-program.ts';
import { startProcess, untilAnswers } from '../processes.ts';
import type { Stage, Subject } from './subject.ts';

const modulesDir = '/usr/lib/nginx/modules';
const needed = [
  `${modulesDir}/ndk_http_module.so`,
  `${modulesDir}/ngx_http_lua_module.so`,
  '/usr/share/lua/5.1/nginx/redis.lua',
  '/usr/share/lua/5.1/nginx/sha256.lua',
  '/usr/share/lua/5.1/resty/core.lua',
];
const accessScript = fileURLToPath(new URL('nginx-lua.lua', import.meta.url));
/** The gateway's decision for the terms of the benchmark, as a Redis Function with plain arguments: the limits per minute and day. */
const decisionLibrary = libraryWithChapters(
  'bench_nginx',
  'bench_nginx_decide',
  `local windows = {
    { field = 'minute', usedField = 'minuteUsed', lengthMs = 60000, limit = tonumber(args[1]) },
    { field = 'day', usedField = 'dayUsed', lengthMs = 86400000, limit = tonumber(args[2]) } }
  local plan = { bans = { after = 100, withinMs = 60000, forMs = 60000, maxMs = 86400000 }, windows = windows }
  local side = decideKey(keys[1], { plan = plan }, { runs = { { requests = 1, units = 1 } } })
  return { nowMs, side[1], side[3], side[13], side[15], side[16], side[17], side[18] }`,
);

/**
 * nginx with Lua is the engine of Kong and APISIX. Hand-written Lua code does the job of the gateway in nginx. The cost of this code is the
 * lowest possible cost of a product with this engine.
 */
export const nginxLua: Subject = {
  name: 'nginx + lua',
  job: 'key, both windows in Redis, all headers, access line, forward',
  identifies: true,
  limits: true,
  missing: () =>
    findProgram('nginx') !== undefined && needed.every((file) => existsSync(file))
      ? undefined
      : 'apt-get install nginx-light libnginx-mod-http-lua lua-nginx-redis lua-resty-core lua-nginx-string',
  async start(stage) {
    const home = join(stage.dir, 'nginx');
    mkdirSync(join(home, 'temp'), { recursive: true });
    const port = await freePort();
    writeFileSync(join(home, 'keys.lua'), keysLua(stage));
    writeFileSync(join(home, 'decide.lua'), decisionLibrary);
    writeFileSync(join(home, 'nginx.conf'), nginxConf({ ...stage, home, port }));
    const args = ['-p', home, '-c', join(home, 'nginx.conf'), '-e', join(home, 'error.log')];
    const running = startProcess(findProgram('nginx') ?? 'nginx', args, {
      dir: home,
      name: 'nginx',
      cpus: stage.subjectCpus,
    });
    // If nginx serves TLS, it responds to this cleartext request with 400.
    await untilAnswers(`http://127.0.0.1:${port}/v1/pets`, running);
    return { ...running, origin: `${stage.tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}` };
  },
};

/** A Lua table of the configured keys by digest, like the gateway's table. */
function keysLua({ credentials }: Stage): string {
  const entries = credentials.all.map(
    ({ id, sha256, limits }) =>
      `["${sha256}"]={id="${id}",plan="enterprise",perMinute=${limits.perMinute},perDay=${limits.perDay}}`,
  );
  return `return {\n${entries.join(',\n')}\n}\n`;
}

function nginxConf({
  home,
  port,
  backendPort,
  redisPort,
  tls,
}: Stage & { readonly home: string; readonly port: number }): string {
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((kind) => `${kind}_temp_path ${home}/temp/${kind};`)
    .join('\n  ');
  // The cipher suite that the gateway prefers.
  const tlsPart =
    tls === undefined
      ? ''
      : `ssl_certificate ${tls.cert};
    ssl_certificate_key ${tls.key};
    ssl_protocols TLSv1.3;
    ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;`;
  return `
${user}
daemon off;
worker_processes 1;
pid ${home}/nginx.pid;
load_module ${modulesDir}/ndk_http_module.so;
load_module ${modulesDir}/ngx_http_lua_module.so;
events { worker_connections 8192; }
http {
  ${temp}
  lua_package_path '${home}/?.lua;/usr/share/lua/5.1/?.lua;;';
  log_format line escape=json '{"time":"$time_iso8601","requestId":"$request_id","method":"$request_method",'
    '"path":"$uri","status":$status,"keyId":"$key_id","plan":"$key_plan","address":"$remote_addr",'
    '"window":"$window","limit":"$limit","remaining":"$remaining","target":"$upstream_addr",'
    '"upstreamTime":"$upstream_response_time","time":"$request_time"}';
  access_log ${home}/access.log line buffer=4k flush=1s;
  keepalive_requests 1000000000;
  keepalive_timeout 65s;
  client_max_body_size 1m;
  upstream backend {
    server 127.0.0.1:${backendPort};
    keepalive 256;
    keepalive_requests 1000000000;
  }
  init_by_lua_block {
    require "resty.core"
    gate = dofile("${accessScript}")({
      keys = require "keys",
      redisPort = ${redisPort},
      library = assert(io.open("${home}/decide.lua")):read("*a"),
    })
  }
  server {
    listen 127.0.0.1:${port} ${tls === undefined ? '' : 'ssl '}backlog=4096;
    ${tlsPart}
    location /v1/ {
      set $key_id "";
      set $key_plan "";
      set $window "";
      set $limit "";
      set $remaining "";
      access_by_lua_block { gate.access() }
      header_filter_by_lua_block { gate.headers() }
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Authorization "";
      proxy_set_header X-Request-Id $request_id;
      proxy_set_header X-Key-Id $key_id;
      proxy_set_header X-Plan $key_plan;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Host $http_host;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header Via "1.1 nginx";
      proxy_pass http://backend;
    }
  }
}
`;
}
