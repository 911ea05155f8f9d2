import type { Certificate, Settings } from '../model.ts';

const dayMs = 86_400_000;

/** How long before its end a certificate is reported, so that a renewal that fails every night is noticed in time. */
const noticeDays = 14;

/** The certificates of the listeners that speak TLS, by the name of the setting. */
export function certificatesOf({ listen, admin }: Pick<Settings, 'listen' | 'admin'>): Certificates {
  return { ...(listen.tls && { listen: listen.tls }), ...(admin.tls && { admin: admin.tls }) };
}

export interface Certificates {
  readonly listen?: Certificate;
  readonly admin?: Certificate;
}

/** What is wrong with the validity of a certificate, as a sentence; undefined while nothing is. */
export function expiryNotice(
  listener: string,
  { file, notAfterMs }: Pick<Certificate, 'file' | 'notAfterMs'>,
  nowMs: number,
): string | undefined {
  const leftMs = notAfterMs - nowMs;
  if (leftMs > noticeDays * dayMs) return undefined;
  const end = new Date(notAfterMs).toISOString();
  const what =
    leftMs > 0 ? `expires on ${end}, in ${describeDays(leftMs)}` : `expired on ${end}: clients refuse it`;
  return `the certificate of \`${listener}.tls\` ${what}; replace ${file} and its key`;
}

/** Since when that is so: since it is reported, or since it has expired. */
export function expiryNoticeSinceMs({ notAfterMs }: Pick<Certificate, 'notAfterMs'>, nowMs: number): number {
  return notAfterMs > nowMs ? notAfterMs - noticeDays * dayMs : notAfterMs;
}

function describeDays(ms: number): string {
  const days = Math.floor(ms / dayMs);
  if (days === 0) return 'less than a day';
  return days === 1 ? 'a day' : `${days} days`;
}
