import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { fetchOnce } from '../../support/fetch-once.ts';
import { freePort } from '../../support/free-port.ts';
import { okResponse, startRecordingBackend } from '../../support/recording-backend.ts';
import { requireProgram } from '../../support/require-program.ts';
import { until } from '../../support/until.ts';
import { type Front, startFront } from './start-front.ts';

/** The close functions of servers and processes that a test has started. */
const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function openFront(url: string): Promise<Front> {
  const front = await startFront({ url, bodyBytesMax: 20_000_000 });
  closers.push(() => front.close());
  return front;
}

interface Framing {
  readonly name: string;
  readonly fieldOf: (size: number) => string;
  readonly frame: (piece: string) => string;
  readonly end: string;
}

const withLength: Framing = {
  name: 'Content-Length',
  fieldOf: (size) => `Content-Length: ${size}`,
  frame: (piece) => piece,
  end: '',
};

const chunked: Framing = {
  name: 'chunks',
  fieldOf: () => 'Transfer-Encoding: chunked',
  frame: (piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`,
  end: '0\r\n\r\n',
};

/** Sends a body, and stops when a response begins. Returns everything that the gateway sends until it closes the connection. */
async function upload(port: number, size: number, { fieldOf, frame, end }: Framing): Promise<string> {
  const socket = connect(port, '127.0.0.1').setEncoding('latin1');
  const next = (event: string) => new Promise((resolve) => socket.once(event, resolve));
  const closed = next('close');
  let received = '';
  socket.on('data', (text: string) => (received += text));
  socket.on('error', () => {});
  socket.write(`POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${fieldOf(size)}\r\n\r\n`);
  const piece = 'x'.repeat(50_000);
  for (let sent = 0; sent < size && received === '' && !socket.destroyed; sent += piece.length) {
    if (socket.write(frame(piece))) await new Promise(setImmediate);
    else await Promise.race([next('drain'), next('data'), closed]);
  }
  if (received === '') socket.write(end);
  await closed;
  return received;
}

async function uploadsTo(url: string, size: number, framing: Framing): Promise<void> {
  const front = await openFront(url);
  const uploads = Array.from({ length: 12 }, () => upload(front.port, size, framing));
  const responses = await Promise.all(uploads);
  const forwarded = { kind: 'forwarded', status: 401 };
  expect(front.outcomes).toMatchObject(Array.from({ length: 12 }, () => forwarded));
  for (const response of responses) expect(response).toMatch(/^HTTP\/1.1 401 .*\bnope$/s);
}

describe.each([withLength, chunked])('each of 12 uploads with $name gets the response', (framing) => {
  describe.each([50_000, 300_000, 8_000_000])('to a body of %i octets', (size) => {
    it('of a Node target that responds and closes without reading the body', async () => {
      const server = createServer((req, res) => {
        if (req.method === 'GET') res.end();
        else res.writeHead(401, { Connection: 'close', 'Content-Length': 4 }).end('nope');
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      closers.push(() => server.close());
      await uploadsTo(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, size, framing);
    });

    it('of a Python target', { tags: size === 300_000 ? [] : ['full'] }, async () => {
      const port = await freePort();
      await startTarget('python3', ['-c', pythonTarget, String(port)], port);
      await uploadsTo(`http://127.0.0.1:${port}`, size, framing);
    });

    it('of HAProxy', { tags: ['full'] }, async () => {
      const port = await freePort();
      const folder = await mkdtemp(join(tmpdir(), 'tollgate-haproxy-'));
      closers.push(() => rm(folder, { recursive: true }));
      const config = join(folder, 'haproxy.cfg');
      await writeFile(config, haproxyConfig(port));
      await startTarget('haproxy', ['-f', config], port);
      await uploadsTo(`http://127.0.0.1:${port}`, size, framing);
    });
  });
});

async function startTarget(program: string, args: readonly string[], port: number): Promise<void> {
  const path = await requireProgram({
    names: [program],
    packageName: program,
    advice: `This test needs ${program} and found none: put ${program} on the PATH.`,
  });
  const child = spawn(path, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  closers.push(() => {
    child.kill('SIGKILL');
    return exited;
  });
  await until(`${program} answers`, async () => {
    expect(child.exitCode, `the exit code of ${program}`).toBeNull();
    return fetchOnce(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    );
  });
}

/** Responds to a POST without reading its body. */
const pythonTarget = `
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Target(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_GET(self):
        self.respond(200, b'')

    def do_POST(self):
        self.respond(401, b'nope')

    def respond(self, status, body):
        self.send_response(status)
        self.send_header('Content-Length', str(len(body)))
        self.send_header('Connection', 'close')
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Target).serve_forever()
`;

function haproxyConfig(port: number): string {
  return `
defaults
  mode http
  timeout client 60s
  timeout server 60s
  timeout connect 60s

frontend target
  bind 127.0.0.1:${port}
  http-request return status 200 if METH_GET
  http-request return status 401 content-type text/plain string nope
`;
}

describe('when a target closes during an upload', () => {
  const withoutLength = 'HTTP/1.1 401 No\r\n\r\nnope';

  async function uploadTo(react: (socket: Socket) => void): Promise<{ text: string; front: Front }> {
    const backend = await startRecordingBackend({ reactTo: 'head', react: (_, socket) => react(socket) });
    closers.push(() => backend.close());
    const front = await openFront(backend.url);
    const text = await upload(front.port, 2_000_000, withLength);
    expect(backend.requests).toHaveLength(1);
    return { text, front };
  }

  it('the end of a response without a length is its end, if the target has ended its side', async () => {
    const { text, front } = await uploadTo((socket) => {
      socket.pause();
      socket.end(withoutLength, 'latin1', () => socket.destroy());
    });
    expect(text).toMatch(/nope(\r\n0\r\n\r\n)?$/);
    expect(front.outcomes).toMatchObject([{ kind: 'forwarded', status: 401 }]);
  });

  it('a response without a length is incomplete after a reset', async () => {
    const { front } = await uploadTo((socket) => {
      socket.pause();
      socket.write(withoutLength, 'latin1', () => socket.destroy());
    });
    expect(front.outcomes).toMatchObject([{ kind: 'failed', code: 'upstream_failed' }]);
  });

  it('without a response, the client gets 502, and the request is not repeated', async () => {
    const { text, front } = await uploadTo((socket) => socket.destroy());
    expect(text).toMatch(/^HTTP\/1.1 502 /);
    expect(front.outcomes).toMatchObject([{ kind: 'failed', code: 'upstream_failed', attempts: 1 }]);
  });

  it('after a part of the response, the client gets no complete response', async () => {
    const { front } = await uploadTo((socket) => {
      socket.pause();
      socket.end(okResponse('nope').slice(0, -1), 'latin1', () => socket.destroy());
    });
    expect(front.outcomes).toMatchObject([{ kind: 'failed', code: 'upstream_failed' }]);
  });
});
