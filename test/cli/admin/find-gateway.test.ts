import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { makeToken } from '../../support/admin-client.ts';
import { createAuthority } from '../../support/certificates.ts';
import { configFolder, mainDocument } from '../../support/config-folder.ts';
import { freePort } from '../../support/free-port.ts';
import { startGatewayHere } from '../../support/gateway-here.ts';
import { type RunningGateway, testConfig } from '../../support/gateway-process.ts';
import { makeCertificate } from '../../support/make-certificate.ts';
import { runTollgate } from '../../support/run-tollgate.ts';
import { startStubAdmin } from '../../support/stub-admin.ts';

const { token, entry } = makeToken('read');
const upstream = { url: 'http://127.0.0.1:1' };

let gateway: RunningGateway;
beforeAll(async () => {
  const admin = { host: '127.0.0.1', port: 0, tokens: [entry] };
  gateway = await startGatewayHere(testConfig({ upstream, admin }));
});
afterAll(() => gateway.stop('SIGKILL'));

async function succeeds(args: readonly string[], env: Record<string, string>): Promise<void> {
  const { exitCode, stdout, stderr } = await runTollgate(['processes', ...args], env);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  expect(stdout).toMatch(/^PROCESS .*\n.*:\d+ +serving /);
}

async function failsWith(sentence: RegExp, args: readonly string[], env: Record<string, string>) {
  const { exitCode, stdout, stderr } = await runTollgate(['processes', ...args], env);
  expect(stderr).toMatch(sentence);
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
  expect(stderr).not.toMatch(/^ +at /m);
  for (const secret of [token, 'hidden']) expect(stderr).not.toContain(secret);
}

const tokenEnv = { TOLLGATE_ADMIN_TOKEN: token };

describe('the gateway of a command', () => {
  it('comes from --admin, then from TOLLGATE_ADMIN, then from the configuration', async () => {
    const nobody = 'http://127.0.0.1:1';
    const { adminUrl } = gateway;
    const port = new URL(adminUrl).port;
    const { file } = configFolder({ 'tollgate.yaml': `${mainDocument}admin: { port: ${port} }\n` });
    await succeeds(['--admin', adminUrl, '--config', '/nowhere'], { ...tokenEnv, TOLLGATE_ADMIN: nobody });
    await succeeds(['--config', '/nowhere'], { ...tokenEnv, TOLLGATE_ADMIN: adminUrl });
    await succeeds(['--config', file], tokenEnv);
    await succeeds([], { ...tokenEnv, TOLLGATE_CONFIG: file, TOLLGATE_ADMIN: '' });
  });

  it('is found in a configuration with other mistakes, with unset variables, and on every interface', async () => {
    const port = new URL(gateway.adminUrl).port;
    const { file } = configFolder({
      'tollgate.yaml': `environment: 3\nbaseUrl: \${NOT_SET}\nkeys: \${NEITHER}\nadmin:\n  host: \${HOST:-0.0.0.0}\n  port: \${ADMIN_PORT:-${port}}\n  tokens: [{ name: a, may: read, sha256: "\${DIGEST}" }]\n`,
    });
    await succeeds(['--config', file], tokenEnv);
    await failsWith(/ECONNREFUSED/, ['--config', file], { ...tokenEnv, ADMIN_PORT: '1' });
  });

  it.each([
    [
      'admin: { host: "${ADMIN_HOST}" }',
      /:9:\d+: the environment variable ADMIN_HOST is not set.*\nSo this file/s,
    ],
    [
      'admin: { port: many }',
      /:9:\d+: `admin.port` must be a whole number.*\nSo this file does not give.*--admin URL/s,
    ],
    [
      'admin: { tls: { cert: none.pem, key: k } }',
      /:9:\d+: `admin.tls.cert`: this file does not exist.*\nSo this file/s,
    ],
    ['admin: { port: 0 }', /`admin.port` is 0, which means any free port: set --admin URL/],
    ['admin: {', /this is not valid YAML.*\nSo this file/s],
  ])('is not found in a configuration with %j, and a sentence explains it', async (line, sentence) => {
    const { file } = configFolder({ 'tollgate.yaml': `${mainDocument}${line}\n` });
    await failsWith(sentence, ['--config', file], tokenEnv);
  });

  it('is not sought at the default address when the file is no configuration', async () => {
    const { pathOf } = configFolder();
    await failsWith(
      /:1:1: this is a keys file\..*\nSo this file/s,
      ['--config', pathOf('keys.yaml')],
      tokenEnv,
    );
    await failsWith(/:1:1: this is an OpenAPI doc.*\nSo/s, ['--config', 'config/openapi.yaml'], tokenEnv);
  });

  it.each([
    [
      'nothing',
      [],
      /^Which gateway\? Give --admin URL.*TOLLGATE_ADMIN.*--config FILE or TOLLGATE_CONFIG\.\n$/,
    ],
    ['no URL', ['--admin', '127.0.0.1:9090'], /must be a URL such as http:\/\/127\.0\.0\.1:9090/],
    ['a URL with a password', ['--admin', 'http://me:hidden@127.0.0.1:9090'], /without user and path/],
    ['a URL with a path', ['--admin', 'http://127.0.0.1:9090/api/v1'], /without user and path/],
    [
      'a port without a listener',
      ['--admin', 'http://127.0.0.1:1'],
      /^No server answers at http:\/\/127\.0\.0\.1:1 \(connect ECONNREFUSED.*start the gateway.*or set --admin/,
    ],
    [
      'a host that is none',
      ['--admin', 'http://nowhere.invalid:9090'],
      /^No server answers at http:\/\/nowhere\.invalid:9090 \(/,
    ],
  ])('is not found by %s, and a sentence explains it', async (_, args, sentence) => {
    await failsWith(sentence, args, tokenEnv);
  });
});

describe('the token', () => {
  it('is read from a file too, without the line break at its end', async () => {
    const { pathOf } = configFolder();
    writeFileSync(pathOf('token'), `${token}\n`);
    const env = { TOLLGATE_ADMIN: gateway.adminUrl, TOLLGATE_ADMIN_TOKEN: '' };
    await succeeds([], { ...env, TOLLGATE_ADMIN_TOKEN_FILE: pathOf('token') });
    await failsWith(
      /^The file \/nowhere of TOLLGATE_ADMIN_TOKEN_FILE cannot be read \(no such file or directory\)\.\n$/,
      [],
      {
        ...env,
        TOLLGATE_ADMIN_TOKEN_FILE: '/nowhere',
      },
    );
  });

  it.each([
    [
      'missing',
      '',
      /^Which token\? Set TOLLGATE_ADMIN_TOKEN, or TOLLGATE_ADMIN_TOKEN_FILE.*"tollgate admin token.*--may write/,
    ],
    ['wrong', 'hidden', /^The gateway at http.* does not know the token of TOLLGATE_ADMIN_TOKEN or /],
    [
      'two words',
      'hidden hidden',
      /^The token in TOLLGATE_ADMIN_TOKEN has a space, a line break or another character/,
    ],
    [
      'not ASCII',
      'hiddén hidden',
      /^The token in TOLLGATE_ADMIN_TOKEN has a space, a line break or another character/,
    ],
  ])('is %s: the sentence states what to do, and does not show the token', async (_, given, sentence) => {
    await failsWith(sentence, ['--admin', gateway.adminUrl], { TOLLGATE_ADMIN_TOKEN: given });
  });

  it('is useless when the gateway has no tokens, and the sentence states how to make one', async () => {
    const open = await startGatewayHere(testConfig({ upstream }));
    onTestFinished(async () => void (await open.stop('SIGKILL')));
    await failsWith(
      /No token is configured.*"tollgate admin token --name NAME/,
      ['--admin', open.adminUrl],
      tokenEnv,
    );
  });
});

describe('another server at the address', () => {
  it.each([
    [
      'the listener for clients',
      { status: 401, body: { code: 'invalid_key', message: 'x', status: 401 } },
      /is the listener for clients: use the admin listener/,
    ],
    [
      'a listener that is not known by this name',
      { status: 421, body: { code: 'unknown_host', message: 'x' } },
      /does not accept this name.*`admin\.hosts`/,
    ],
    [
      'a gateway that is busy',
      { status: 503, body: { code: 'busy', message: 'Too many\u001b[2J.' } },
      /answered 503: Too many\\u\{1b\}\[2J\./,
    ],
    [
      'an older gateway',
      { status: 404, body: { code: 'not_found', message: 'x' } },
      /sent status 404: is it the admin listener of a gateway with the same version as this command\?/,
    ],
    ['a web page', { body: '<html>' }, /sent status 200 and no JSON: is it the admin listener/],
    [
      'other JSON',
      { body: { processes: [{ id: 3 }] } },
      /sent a response in which `verdict` is not as expected/,
    ],
    ['an error without a reason', { status: 500, body: {} }, /sent status 500 and no reason/],
  ])('is named: %s', async (_, response, sentence) => {
    const { url } = await startStubAdmin(() => response);
    await failsWith(sentence, ['--admin', url], tokenEnv);
  });

  it('is named when it is the listener for clients', async () => {
    const url = `http://127.0.0.1:${gateway.port}`;
    await failsWith(/is the listener for clients: use the admin listener/, ['--admin', url], tokenEnv);
  });

  it('is reported as missing when it closes the connection', async () => {
    const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await new Promise((resolve) => server.once('listening', resolve));
    const address = server.address();
    const url = `http://127.0.0.1:${Object(address).port}`;
    await failsWith(/^No server answers at .* \(socket hang up\)/, ['--admin', url], tokenEnv);
  });
});

describe('an admin listener over TLS', () => {
  it('is trusted for its own certificate in the configuration, with any names, and for --ca with its name', async () => {
    const authority = createAuthority();
    const { cert, key } = authority.issue({ names: ['admin.example.com'] });
    const port = await freePort();
    const { pathOf } = configFolder({
      'cert.pem': cert + authority.cert,
      'key.pem': key,
      'ca.pem': authority.cert,
    });
    const tls = { cert: pathOf('cert.pem'), key: pathOf('key.pem') };
    const admin = { host: '127.0.0.1', port, tls, tokens: [entry] };
    const secure = await startGatewayHere(testConfig({ upstream, admin }));
    onTestFinished(async () => void (await secure.stop('SIGKILL')));
    await succeeds(['--config', `${secure.configDir}/gateway.yaml`], tokenEnv);

    const url = `https://127.0.0.1:${port}`;
    await failsWith(/certificate of https:.* is not accepted .*--ca FILE/, ['--admin', url], tokenEnv);
    await failsWith(
      /certificate of https:.* is not accepted .*not in the cert's list/,
      ['--admin', url, '--ca', pathOf('ca.pem')],
      tokenEnv,
    );
    await failsWith(
      /^--ca .*key\.pem has no certificate in PEM/,
      ['--admin', url, '--ca', pathOf('key.pem')],
      tokenEnv,
    );
    await failsWith(/answered 400: .*https:\/\//, ['--admin', `http://127.0.0.1:${port}`], tokenEnv);
    await failsWith(
      /does not speak TLS: use http:\/\//,
      ['--admin', gateway.adminUrl.replace('http', 'https')],
      tokenEnv,
    );

    const renewed = authority.issue({ names: ['127.0.0.1'] });
    writeFileSync(tls.cert, renewed.cert);
    writeFileSync(tls.key, renewed.key);
    const asked = async () =>
      (await runTollgate(['processes', '--admin', url, '--ca', pathOf('ca.pem')], tokenEnv)).exitCode;
    await expect.poll(asked).toBe(0);
  });

  it('is not trusted for another certificate of the same authority', async () => {
    const authority = createAuthority();
    const [own, other] = [authority.issue({ names: ['127.0.0.1'] }), makeCertificate()];
    const port = await freePort();
    const folder = configFolder({
      'cert.pem': own.cert,
      'key.pem': own.key,
      'other.pem': other.cert + authority.cert,
    });
    const tls = { cert: folder.pathOf('cert.pem'), key: folder.pathOf('key.pem') };
    const secure = await startGatewayHere(
      testConfig({ upstream, admin: { host: '127.0.0.1', port, tls, tokens: [entry] } }),
    );
    onTestFinished(async () => void (await secure.stop('SIGKILL')));
    folder.write(
      'tollgate.yaml',
      `${mainDocument}admin: { port: ${port}, tls: { cert: other.pem, key: none } }\n`,
    );
    await failsWith(/is not accepted/, ['--config', folder.file], tokenEnv);
  });
});
