import type { UpstreamTls } from '../../../shared/model.ts';
import { type Problem, wholeFile } from '../../problems/problem.ts';
import type { RawUpstream } from '../../schema/settings-schema.ts';
import type { LoadContext } from '../source-reader.ts';
import { foreignKey, parseCertificates, parsePrivateKey, refusalOfOpenSsl } from './parse-pem.ts';

type TlsField = 'ca' | 'cert' | 'key';
type TlsFiles = { readonly [Field in TlsField]?: string | undefined };

interface PemFile {
  readonly file: string;
  readonly text: string;
}

/** @param path the path of the upstream in the main file */
export function readUpstreamTls(
  { tls, url }: RawUpstream,
  path: readonly PropertyKey[],
  context: LoadContext,
): UpstreamTls | undefined {
  if (tls === undefined) return undefined;
  const tlsPath = [...path, 'tls'];
  if (!url.startsWith('https:')) {
    const message = '`tls` needs a `url` that begins with https://';
    context.problems.push({ ...context.main.placeOf(tlsPath), message });
  }
  return { ...readClientTls(tls, tlsPath, context), serverName: tls.serverName };
}

/**
 * Checks that a TLS context can be made from the PEM files.
 *
 * @param tls the paths of the files: trusted authorities, and the client's certificate and private key
 * @param path the path of these fields in the main file
 */
export function readClientTls(
  tls: TlsFiles,
  path: readonly PropertyKey[],
  { main, fileOf, reader, problems }: LoadContext,
): Pick<UpstreamTls, 'ca' | 'clientCertificate'> {
  const problem = (field: TlsField, message: string) =>
    problems.push({ ...main.placeOf([...path, field]), message });
  if (tls.cert !== undefined && tls.key === undefined) problem('cert', '`cert` needs `key` beside it');
  if (tls.key !== undefined && tls.cert === undefined) problem('key', '`key` needs `cert` beside it');

  const read = (field: TlsField): PemFile | undefined => {
    const named = tls[field];
    if (named === undefined) return undefined;
    const file = fileOf(named);
    const text = reader.readText({ file, main, path: [...path, field] });
    return text === undefined ? undefined : { file, text };
  };
  const [ca, cert, key] = [read('ca'), read('cert'), read('key')];
  problems.push(...faultsOf({ ca, cert, key }));
  return { ca: ca?.text, clientCertificate: cert && key && { cert: cert.text, key: key.text } };
}

function faultsOf(files: Readonly<Record<TlsField, PemFile | undefined>>): readonly Problem[] {
  const { ca, cert, key } = files;
  const problems: Problem[] = [];
  const check = <T>(file: PemFile | undefined, parse: (text: string) => T | string): T | undefined => {
    const parsed = file && parse(file.text);
    if (typeof parsed !== 'string') return parsed;
    problems.push({ ...wholeFile(file?.file ?? ''), message: parsed });
    return undefined;
  };
  check(ca, parseCertificates);
  const [leaf] = check(cert, parseCertificates) ?? [];
  const privateKey = check(key, parsePrivateKey);
  if (problems.length > 0) return problems;
  if (cert && key && leaf && privateKey && !leaf.checkPrivateKey(privateKey)) {
    return [foreignKey(cert.file, key.file)];
  }
  const options = { ca: ca?.text, cert: cert?.text, key: key?.text };
  const refusal = refusalOfOpenSsl(options, 'this certificate or its key');
  const file = cert?.file ?? ca?.file;
  return refusal === undefined || file === undefined ? [] : [{ ...wholeFile(file), message: refusal }];
}
