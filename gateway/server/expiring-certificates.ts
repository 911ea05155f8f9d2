import type { Logger } from 'pino';
import type { GatewayState } from '../admin/readiness.ts';
import type { CertificateExpiring } from '../fleet/kinds/processes.ts';
import type { Settings } from '../shared/model.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import { certificatesOf, expiryNotice, expiryNoticeSinceMs } from '../shared/tls/certificate-expiry.ts';

export function watchCertificates({
  settings,
  log,
  onEvent,
  nowMs,
  bounds,
}: {
  readonly settings: Settings;
  readonly log: Logger;
  readonly onEvent: (event: CertificateExpiring) => void;
  /** The gateway's clock, epoch ms. */
  readonly nowMs: () => number;
  readonly bounds: Pick<Bounds, 'certificateNoticeIntervalMs'>;
}) {
  let certificates = certificatesOf(settings);
  /** The last logged warning about each listener's certificate. */
  const reported = new Map<string, string>();
  let timer: NodeJS.Timeout | undefined;

  /**
   * Logs the warning about a certificate when its text has changed. At the start and at a reload, the configuration's own warnings include
   * these warnings.
   */
  function report() {
    const expiring = Object.entries(certificates).flatMap(([listener, certificate]) => {
      const notice = expiryNotice(listener, certificate, nowMs());
      return notice === undefined ? [] : [{ listener, notice, notAfterMs: certificate.notAfterMs }];
    });
    for (const one of expiring) {
      if (reported.get(one.listener) !== one.notice) onEvent({ kind: 'certificate_expiring', ...one });
      reported.set(one.listener, one.notice);
    }
    return expiring;
  }

  return {
    current: () => certificates,
    /** The `certificates` member of the `/readyz` response. */
    state: (): GatewayState['certificates'] =>
      Object.fromEntries(
        Object.entries(certificates).map(([name, certificate]) => {
          const notice = expiryNotice(name, certificate, nowMs());
          const notAfter = new Date(certificate.notAfterMs).toISOString();
          if (notice === undefined) return [name, { notAfter }];
          const isExpired = certificate.notAfterMs <= nowMs();
          const noticeSinceAt = new Date(expiryNoticeSinceMs(certificate, nowMs())).toISOString();
          return [name, { notAfter, notice, noticeSinceAt, isExpired }];
        }),
      ),
    start() {
      report();
      timer = setInterval(() => {
        for (const { notice } of report()) log.warn(notice);
      }, bounds.certificateNoticeIntervalMs).unref();
    },
    /** Replaces the certificates after a reload. Turning TLS on or off needs a restart. */
    replace(next: Settings) {
      const read = certificatesOf(next);
      certificates = {
        ...(certificates.listen && { listen: read.listen ?? certificates.listen }),
        ...(certificates.admin && { admin: read.admin ?? certificates.admin }),
      };
      report();
    },
    close: () => clearInterval(timer),
  };
}
