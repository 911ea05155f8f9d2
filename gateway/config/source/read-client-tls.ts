import { createSecureContext } from 'node:tls';
import type { UpstreamTls } from '../../shared/model.ts';
import { type Problem, wholeFile } from '../problems/problem.ts';
import { parseCertificates, parsePrivateKey } from './parse-pem.ts';
import type { YamlSource } from './parse-yaml.ts';
import type { SourceReader } from './source-reader.ts';

export interface ClientTlsToRead {
  /** The paths of the files: trusted authorities, and the client's certificate and private key. */
  readonly tls: { readonly [Field in TlsField]?: string | undefined };
  /** The path of these fields in the main file. */
  readonly path: readonly PropertyKey[];
  readonly main: YamlSource;
  readonly reader: SourceReader;
  readonly fileOf: (path: string) => string;
}

type TlsField = 'ca' | 'cert' | 'key';

/** A PEM file and its content. */
interface PemFile {
  readonly file: string;
  readonly text: string;
}

/** Reads the PEM files of a TLS client, and creates a TLS context as its connections would. */
export function readClientTls(
  { tls, path, main, reader, fileOf }: ClientTlsToRead,
  problems: Problem[],
): Pick<UpstreamTls, 'ca' | 'own'> {
  const problem = (field: TlsField, message: string) =>
    problems.push({ ...main.placeOf([...path, field]), message });
  if (tls.cert !== undefined && tls.key === undefined) problem('cert', '`cert` needs `key` beside it');
  if (tls.key !== undefined && tls.cert === undefined) problem('key', '`key` needs `cert` beside it');

  const read = (field: TlsField): PemFile | undefined => {
    const named = tls[field];
    if (named === undefined) return undefined;
    const file = fileOf(named);
    const text = reader.readText({ file, mentionedAt: main.placeOf([...path, field]) });
    return text === undefined ? undefined : { file, text };
  };
  const [ca, cert, key] = [read('ca'), read('cert'), read('key')];
  problems.push(...faultsOf({ ca, cert, key }));
  return {
    ...(ca && { ca: ca.text }),
    ...(cert && key && { own: { cert: cert.text, key: key.text } }),
  };
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
    const message =
      'this key does not belong to the (first) certificate of the other file; replace both together';
    const related = { ...wholeFile(cert.file), message: 'the certificate is here' };
    return [{ ...wholeFile(key.file), message, related }];
  }
  const refusal = tryContext(files);
  const file = cert?.file ?? ca?.file;
  return refusal === undefined || file === undefined ? [] : [{ ...wholeFile(file), message: refusal }];
}

/** The reason why OpenSSL rejects the files, for example a key that is too short. */
function tryContext({ ca, cert, key }: Readonly<Record<TlsField, PemFile | undefined>>): string | undefined {
  try {
    createSecureContext({ ca: ca?.text, cert: cert?.text, key: key?.text });
    return undefined;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    return `OpenSSL does not accept this certificate or its key (${code})`;
  }
}
