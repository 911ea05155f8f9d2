/**
 * Whether requests cannot be read or changed on their way: with https, or with http to a loopback address. The URL parser has normalised
 * the host: for example, `127.1` is 127.0.0.1 here.
 */
export function isSecureUrl({ protocol, hostname }: URL): boolean {
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));
}

/** @param host the host of a URL, with IPv6 addresses in brackets */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(host);
}
