import type { IncomingMessage } from 'node:http';

/**
 * Reads and drops what is left of a body, `bytesMax` of it at most: a connection that is closed over unread bytes is
 * reset, and the client may lose the answer (RFC 9112 §9.6).
 */
export async function linger(request: IncomingMessage, bytesMax: number): Promise<void> {
  let bytes = 0;
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      bytes += chunk.length;
      if (bytes > bytesMax) return;
    }
  } catch {
    // The client went away in mid-body: nobody waits for the answer.
  }
}
