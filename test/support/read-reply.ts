/** Reads a response to its end. `body` is undefined for a response that is not JSON. */
export async function readReply(response: Response) {
  const { status, headers } = response;
  const text = await response.text();
  const isJson = headers.get('content-type') === 'application/json';
  return { status, headers, text, body: isJson && text !== '' ? JSON.parse(text) : undefined };
}
