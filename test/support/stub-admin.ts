import { createServer } from 'node:http';
import { onTestFinished } from 'vitest';

export interface StubAdmin {
  readonly url: string;
  /** The requested paths, with their queries. */
  readonly asked: string[];
}

/**
 * Starts a server that responds like another version of the admin listener, or like a broken version. For example, a response may contain
 * names that no current configuration accepts. The server is closed after the test.
 *
 * @param respond the status and the body for a path; a text is sent unchanged, any other value as JSON
 */
export async function startStubAdmin(
  respond: (path: string) => { readonly status?: number; readonly body: unknown } | undefined,
): Promise<StubAdmin> {
  const asked: string[] = [];
  const server = createServer((req, res) => {
    const { url = '' } = req;
    asked.push(url);
    const response = respond(url);
    // Undefined: the server never responds.
    if (response === undefined) return;
    res.writeHead(response.status ?? 200, { 'content-type': 'application/json' });
    res.end(typeof response.body === 'string' ? response.body : JSON.stringify(response.body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server listens on TCP');
  return { url: `http://127.0.0.1:${address.port}`, asked };
}
