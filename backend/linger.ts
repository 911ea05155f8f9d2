import type { IncomingMessage } from 'node:http';

/**
 * Reads and discards the rest of a body, at most `bytesMax`. Closing a connection with unread bytes resets it, and the
 * client may lose the response (RFC 9112 §9.6).
 */
export async function linger(request: IncomingMessage, bytesMax: number): Promise<void> {
  let bytes = 0;
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      bytes += chunk.length;
      if (bytes > bytesMax) return;
    }
  } catch {
    // The client disconnected before its body was complete, so the request was abandoned.
  }
}
