import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../support/free-port.ts';
import { findProgram } from '../find-program.ts';
import { startProcess, untilAnswers } from '../processes.ts';
import type { Stage, Subject } from './subject.ts';

/** haproxy with a stick table. The limits of haproxy are in its own memory and are not shared with other processes. */
export const haproxy: Subject = {
  name: 'haproxy',
  job: 'key, one window in its own memory, access line, forward',
  identifies: true,
  limits: true,
  missing: () => (findProgram('haproxy') === undefined ? 'apt-get install haproxy' : undefined),
  async start(stage) {
    const home = join(stage.dir, 'haproxy');
    mkdirSync(home, { recursive: true });
    const port = await freePort();
    const limits = stage.credentials.all.map(
      ({ secret, limits: { perMinute } }) => `${secret} ${perMinute}\n`,
    );
    writeFileSync(join(home, 'limits.map'), limits.join(''));
    writeFileSync(join(home, 'haproxy.cfg'), haproxyConf({ ...stage, home, port }));
    const args = ['-db', '-f', join(home, 'haproxy.cfg')];
    const running = startProcess(findProgram('haproxy') ?? 'haproxy', args, {
      dir: home,
      name: 'haproxy',
      cpus: stage.subjectCpus,
    });
    const origin = `http://127.0.0.1:${port}`;
    await untilAnswers(`${origin}/v1/pets`, running);
    return { ...running, origin };
  },
};

/**
 * haproxy uses one thread, like the single worker of the other subjects. A key in a map file of haproxy cannot contain a space. haproxy
 * therefore looks up the secret without the word `Bearer`.
 */
function haproxyConf({
  home,
  port,
  backendPort,
}: Stage & { readonly home: string; readonly port: number }): string {
  return `
global
  nbthread 1
  maxconn 8192
  log stdout format raw local0
defaults
  mode http
  log global
  option httplog
  http-reuse always
  timeout connect 2s
  timeout client 65s
  timeout server 30s
  timeout http-keep-alive 65s
frontend public
  bind 127.0.0.1:${port}
  http-request set-var(txn.secret) req.hdr(authorization),word(2,' ')
  http-request set-var(txn.limit) var(txn.secret),map_str_int(${home}/limits.map,0)
  http-request deny deny_status 401 if { var(txn.limit) -m int eq 0 }
  http-request track-sc0 var(txn.secret) table windows
  http-request deny deny_status 429 if { sc_http_req_rate(0),sub(txn.limit) -m int gt 0 }
  http-request del-header Authorization
  http-response set-header X-RateLimit-Limit %[var(txn.limit)]
  default_backend store
backend windows
  stick-table type string len 64 size 100k expire 2m store http_req_rate(60s)
backend store
  server one 127.0.0.1:${backendPort} maxconn 256
`;
}
