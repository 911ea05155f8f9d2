import { otherDocument } from './problems/other-document.ts';
import { type Problem, wholeFile } from './problems/problem.ts';
import { adminAddressSchema } from './schema/settings-schema.ts';
import { shapeProblems } from './schema/shape-problems.ts';
import { parseCertificates } from './source/credentials/parse-pem.ts';
import { besideFile, createSourceReader } from './source/source-reader.ts';

export type AdminAddress =
  | {
      readonly kind: 'read';
      readonly host: string;
      readonly port: number;
      /** PEM without the rest of the chain; absent without TLS. */
      readonly certificate?: string;
    }
  | { readonly kind: 'unreadable'; readonly problems: readonly Problem[] };

/**
 * Ignores mistakes elsewhere in the configuration and unset variables, so that operators can query a gateway while its configuration file
 * is broken.
 */
export function readAdminAddress({
  file,
  env,
}: {
  readonly file: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}): AdminAddress {
  const reader = createSourceReader({ env, drafts: undefined, makesKeysFile: false, onRead: undefined });
  const main = reader.read({ file, kind: 'settings', mentionedAt: wholeFile(file) });
  if (main === undefined) return { kind: 'unreadable', problems: reader.problems() };
  const other = otherDocument(file, main.value);
  if (other !== undefined) return { kind: 'unreadable', problems: [other] };
  const read = [['host'], ['port'], ['tls', 'cert']].map((path) => main.placeOf(['admin', ...path]));
  const unread = reader
    .problems()
    .filter(({ line, column }) => read.some((place) => place.line === line && place.column === column));
  if (unread.length > 0) return { kind: 'unreadable', problems: unread };
  const { data, error } = adminAddressSchema.safeParse(main.value);
  if (data === undefined) return { kind: 'unreadable', problems: shapeProblems(error, main) };
  const { host, port, tls } = data.admin;
  if (tls === undefined) return { kind: 'read', host, port };
  const certFile = besideFile(file, tls.cert);
  const pem = reader.readText({ file: certFile, main, path: ['admin', 'tls', 'cert'] });
  if (pem === undefined) return { kind: 'unreadable', problems: reader.problems().slice(-1) };
  const certificates = parseCertificates(pem);
  if (typeof certificates === 'string') {
    return { kind: 'unreadable', problems: [{ ...wholeFile(certFile), message: certificates }] };
  }
  return { kind: 'read', host, port, certificate: certificates[0]?.toString() ?? '' };
}
