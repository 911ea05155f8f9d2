import type { Certificate } from '../../../shared/model.ts';
import { secureContextOptions } from '../../../shared/tls/secure-context.ts';
import { wholeFile } from '../../problems/problem.ts';
import type { Digests } from '../read-config-file.ts';
import type { LoadContext } from '../source-reader.ts';
import { foreignKey, parseCertificates, parsePrivateKey, refusalOfOpenSsl } from './parse-pem.ts';

/**
 * Creates a TLS context as the listener would. No message quotes the private key.
 *
 * @param inForce the digests of the current configuration's files. An expired certificate in an unchanged file is not reported, so that an
 * edit of another file can take effect
 */
export function readCertificate(
  listener: 'listen' | 'admin',
  tls: { readonly cert: string; readonly key: string } | undefined,
  { main, fileOf, reader, problems }: LoadContext,
  inForce: Digests | undefined,
): Certificate | undefined {
  if (tls === undefined) return undefined;
  const read = (name: 'cert' | 'key') => {
    const file = fileOf(tls[name]);
    return { file, text: reader.readText({ file, main, path: [listener, 'tls', name] }) };
  };
  const [cert, key] = [read('cert'), read('key')];
  if (cert.text === undefined || key.text === undefined) return undefined;

  const chain = parseCertificates(cert.text);
  const privateKey = parsePrivateKey(key.text);
  const report = (file: string, message: string) => void problems.push({ ...wholeFile(file), message });
  if (typeof chain === 'string') report(cert.file, chain);
  if (typeof privateKey === 'string') report(key.file, privateKey);
  if (typeof chain === 'string' || typeof privateKey === 'string') return undefined;

  const [leaf] = chain;
  if (leaf === undefined) throw new Error('a chain without a certificate was read');
  const notAfterMs = leaf.validToDate.getTime();
  const isInForce = () => inForce?.get(cert.file) === reader.digests().get(cert.file);
  const certificate = { file: cert.file, cert: cert.text, key: key.text, notAfterMs };
  if (!leaf.checkPrivateKey(privateKey)) {
    problems.push(foreignKey(cert.file, key.file));
  } else if (notAfterMs <= Date.now() && !isInForce()) {
    const end = leaf.validToDate.toISOString();
    report(cert.file, `this certificate expired on ${end}; replace it and its private key`);
  } else {
    const what = 'this certificate, its chain or its key';
    const refusal = refusalOfOpenSsl(secureContextOptions(certificate), what);
    if (refusal === undefined) return certificate;
    report(cert.file, refusal);
  }
  return undefined;
}
