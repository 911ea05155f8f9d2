import type { Certificate, Settings } from '../model.ts';

const dayMs = 86_400_000;

/** A certificate is reported this long before its end, so that a failing renewal is noticed in time. */
const noticeDays = 14;

/** The certificates of listeners with TLS, by the name of the setting. */
export function certificatesOf({ listen, admin }: Pick<Settings, 'listen' | 'admin'>): Certificates {
  // Absent members, because callers iterate over them.
  return { ...(listen.tls && { listen: listen.tls }), ...(admin.tls && { admin: admin.tls }) };
}

export interface Certificates {
  readonly listen?: Certificate;
  readonly admin?: Certificate;
}

/** A sentence about a certificate that expires soon or has expired; otherwise undefined. */
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

/** When the notice began, or when the certificate expired. */
export function expiryNoticeSinceMs({ notAfterMs }: Pick<Certificate, 'notAfterMs'>, nowMs: number): number {
  return notAfterMs > nowMs ? notAfterMs - noticeDays * dayMs : notAfterMs;
}

function describeDays(ms: number): string {
  const days = Math.floor(ms / dayMs);
  if (days === 0) return 'less than a day';
  return days === 1 ? 'a day' : `${days} days`;
}
