import { readFileSync } from 'node:fs';
import { connect } from 'node:tls';

/**
 * A client that makes a new TLS connection for each request, without session resumption:
 * `node handshake-load.ts PORT SECRETS-FILE SECONDS`. Prints the numbers of expected and unexpected responses.
 */
const [port = '', secretsFile = '', seconds = ''] = process.argv.slice(2);
const concurrency = 16;
const [secret = ''] = readFileSync(secretsFile, 'utf8').split('\n');
const request = `GET /v1/pets HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${secret}\r\nConnection: close\r\n\r\n`;
const figures = { requests: 0, failed: 0, example: '' };

/** @returns the difference from the expected response; undefined when there is none */
function exchange(): Promise<string | undefined> {
  return new Promise((resolve) => {
    // All subjects use one curve, because newer versions of OpenSSL add a second, hybrid key exchange when both sides
    // support it.
    const socket = connect({
      port: Number(port),
      host: '127.0.0.1',
      rejectUnauthorized: false,
      ecdhCurve: 'X25519',
    });
    socket.setTimeout(10_000, () => socket.destroy(new Error('timeout')));
    let [negotiated, received, problem] = ['', '', ''];
    socket.once('secureConnect', () => {
      const resumed = socket.isSessionReused() ? ', resumed' : '';
      negotiated = `${socket.getProtocol()} ${socket.getCipher().name}${resumed}`;
      socket.write(request);
    });
    socket.setEncoding('latin1').on('data', (text: string) => {
      received += text;
    });
    socket.once('error', ({ message }) => {
      problem = message;
    });
    socket.once('close', () => {
      if (problem !== '') resolve(problem);
      else if (negotiated !== 'TLSv1.3 TLS_AES_128_GCM_SHA256') resolve(`negotiated ${negotiated}`);
      else resolve(received.startsWith('HTTP/1.1 200 ') ? undefined : `not 200: ${received.slice(0, 30)}`);
    });
  });
}

async function keepConnecting(untilMs: number): Promise<void> {
  while (performance.now() < untilMs) {
    const problem = await exchange();
    if (problem === undefined) figures.requests++;
    else {
      figures.failed++;
      figures.example = problem;
    }
  }
}

const startedMs = performance.now();
const untilMs = startedMs + Number(seconds) * 1_000;
await Promise.all(Array.from({ length: concurrency }, () => keepConnecting(untilMs)));
console.log(JSON.stringify({ ...figures, seconds: (performance.now() - startedMs) / 1_000 }));
