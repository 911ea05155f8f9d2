import type { UpstreamTls } from '../../shared/model.ts';
import type { Problem } from '../problems/problem.ts';
import type { RawUpstream } from '../schema/settings-schema.ts';
import { type ClientTlsToRead, readClientTls } from './read-client-tls.ts';

export interface UpstreamTlsToRead extends Omit<ClientTlsToRead, 'tls'> {
  readonly upstream: RawUpstream;
}

/** Reads the TLS files for connections to an upstream's targets. `path` is the upstream's path in the main file. */
export function readUpstreamTls(
  { upstream, path, ...source }: UpstreamTlsToRead,
  problems: Problem[],
): UpstreamTls | undefined {
  const { tls, url } = upstream;
  if (tls === undefined) return undefined;
  const tlsPath = [...path, 'tls'];
  if (!url.startsWith('https:')) {
    const message = '`tls` needs a `url` that begins with https://';
    problems.push({ ...source.main.placeOf(tlsPath), message });
  }
  return {
    ...readClientTls({ tls, path: tlsPath, ...source }, problems),
    ...(tls.serverName !== undefined && { serverName: tls.serverName }),
  };
}
