/**
 * Masks the parts of a URL that may be credentials: the user information, and the values of query parameters such as
 * `redis://redis?password=…`. A text that is not a URL is masked as a whole.
 */
export function maskUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null) return masked;
  const user = url.username !== '' || url.password !== '' ? `${masked}@` : '';
  const parameters = [...url.searchParams.keys()].map((name) => `${name}=${masked}`).join('&');
  return `${url.protocol}//${user}${url.host}${url.pathname}${parameters && `?${parameters}`}`;
}

/** Masks everything after the origin of a URL. The path of a webhook's URL often contains a token. */
export function maskPath(text: string): string {
  const url = new URL(text);
  const isBare = url.pathname === '/' && url.search === '';
  return `${url.origin}/${isBare ? '' : masked}`;
}

const masked = '***';
