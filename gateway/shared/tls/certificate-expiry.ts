import type { Certificate, Settings } from '../model.ts';
import { dayMs } from '../words/figures.js';

/** Operators thus notice a failing renewal in time. */
const noticeDays = 14;

/** By the name of the listener's setting. */
export function certificatesOf({ listen, admin }: Pick<Settings, 'listen' | 'admin'>): Certificates {
  // Callers iterate over the members, so a listener without TLS must not be a member.
  return { ...(listen.tls && { listen: listen.tls }), ...(admin.tls && { admin: admin.tls }) };
}

export interface Certificates {
  readonly listen?: Certificate;
  readonly admin?: Certificate;
}

/** Undefined until `noticeDays` before the expiry. */
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

/** When the certificate expired, or when the warning about its expiry began. */
export function expiryNoticeSinceMs({ notAfterMs }: Pick<Certificate, 'notAfterMs'>, nowMs: number): number {
  return notAfterMs > nowMs ? notAfterMs - noticeDays * dayMs : notAfterMs;
}

function describeDays(ms: number): string {
  const days = Math.floor(ms / dayMs);
  if (days === 0) return 'less than a day';
  return days === 1 ? 'a day' : `${days} days`;
}
