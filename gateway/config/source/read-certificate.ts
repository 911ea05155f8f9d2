import { createSecureContext } from 'node:tls';
import type { Certificate } from '../../shared/model.ts';
import { secureContextOptions } from '../../shared/tls/secure-context.ts';
import { type Place, type Problem, wholeFile } from '../problems/problem.ts';
import { parseCertificates, parsePrivateKey } from './parse-pem.ts';
import type { SourceReader } from './source-reader.ts';

export interface CertificateFiles {
  readonly reader: SourceReader;
  /** The PEM file with the certificate and its chain. `key` is the PEM file with the private key. */
  readonly cert: { readonly file: string; readonly mentionedAt: Place };
  readonly key: { readonly file: string; readonly mentionedAt: Place };
  readonly nowMs: number;
  /**
   * Whether the certificate file is unchanged from the current configuration. An unchanged certificate may have expired, because
   * the edit may be about another file.
   */
  readonly isInForce: () => boolean;
}

type ReadCertificate =
  | { readonly kind: 'read'; readonly certificate: Certificate }
  /** The reader has further problems if a file could not be read. */
  | { readonly kind: 'invalid'; readonly problems: readonly Problem[] };

/** Reads a certificate and its private key, and creates a TLS context as a listener would. No message quotes the private key. */
export function readCertificate({ reader, cert, key, nowMs, isInForce }: CertificateFiles): ReadCertificate {
  const certText = reader.readText(cert);
  const keyText = reader.readText(key);
  if (certText === undefined || keyText === undefined) return { kind: 'invalid', problems: [] };

  const chain = parseCertificates(certText);
  const privateKey = parsePrivateKey(keyText);
  const problems: Problem[] = [];
  const report = (file: string, message: string) => problems.push({ ...wholeFile(file), message });
  if (typeof chain === 'string') report(cert.file, chain);
  if (typeof privateKey === 'string') report(key.file, privateKey);
  if (typeof chain === 'string' || typeof privateKey === 'string') return { kind: 'invalid', problems };

  const [leaf] = chain;
  if (leaf === undefined) throw new Error('a chain without a certificate was read');
  const notAfterMs = leaf.validToDate.getTime();
  if (!leaf.checkPrivateKey(privateKey)) {
    const message =
      'this key does not belong to the (first) certificate of the other file; replace both together';
    const related = { ...wholeFile(cert.file), message: 'the certificate is here' };
    problems.push({ ...wholeFile(key.file), message, related });
  } else if (notAfterMs <= nowMs && !isInForce()) {
    const end = leaf.validToDate.toISOString();
    report(cert.file, `this certificate expired on ${end}; put a renewed one and its key in place`);
  } else {
    const refusal = tryContext(certText, keyText);
    if (refusal !== undefined) report(cert.file, refusal);
  }
  if (problems.length > 0) return { kind: 'invalid', problems };
  return { kind: 'read', certificate: { file: cert.file, cert: certText, key: keyText, notAfterMs } };
}

/** The reason why OpenSSL rejects the pair, for example a key that is too short. */
function tryContext(cert: string, key: string): string | undefined {
  try {
    createSecureContext(secureContextOptions({ cert, key }));
    return undefined;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    return `OpenSSL does not accept this certificate, its chain or its key (${code})`;
  }
}
