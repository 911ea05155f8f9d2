import { readFile, writeFile } from 'node:fs/promises';
import { freePort } from './free-port.ts';

/** Replaces the ports in a configuration that `init` has written. A digest in the file may have the digits of a port. */
export async function useFreePorts(
  file: string,
): Promise<{ readonly port: number; readonly adminPort: number }> {
  const [port, adminPort] = [await freePort(), await freePort()];
  const written = await readFile(file, 'utf8');
  await writeFile(file, written.replaceAll(':-8080}', `:-${port}}`).replaceAll(':-9090}', `:-${adminPort}}`));
  return { port, adminPort };
}
