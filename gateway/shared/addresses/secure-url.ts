/**
 * Whether requests to a URL cannot be read or changed on their way: with https, or with http to a loopback address. The URL parser has
 * normalised the host. For example, it changes `127.1` to 127.0.0.1, and `[0:0:0:0:0:0:0:1]` to [::1].
 */
export function isSecureUrl({ protocol, hostname }: URL): boolean {
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));
}

/** @param host the host of a URL, with IPv6 addresses in brackets */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(host);
}
