import type { Certificate, Settings } from '../model.ts';
import { dayMs } from '../words/figures.js';

/** The number of days before the expiry of a certificate at which warnings begin. Operators thus notice a failing renewal in time. */
const noticeDays = 14;

/** The certificates of the listeners with TLS, by the name of the listener's setting. */
export function certificatesOf({ listen, admin }: Pick<Settings, 'listen' | 'admin'>): Certificates {
  // Callers iterate over the members, so a listener without TLS must not be a member.
  return { ...(listen.tls && { listen: listen.tls }), ...(admin.tls && { admin: admin.tls }) };
}

export interface Certificates {
  readonly listen?: Certificate;
  readonly admin?: Certificate;
}

/** The warning about a certificate that expires soon or has expired; undefined for any other certificate. */
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

/** The time at which the certificate expired, or at which the warning about its expiry began. */
export function expiryNoticeSinceMs({ notAfterMs }: Pick<Certificate, 'notAfterMs'>, nowMs: number): number {
  return notAfterMs > nowMs ? notAfterMs - noticeDays * dayMs : notAfterMs;
}

function describeDays(ms: number): string {
  const days = Math.floor(ms / dayMs);
  if (days === 0) return 'less than a day';
  return days === 1 ? 'a day' : `${days} days`;
}
