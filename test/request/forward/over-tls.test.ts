/**
 * @module-tag full
 *
 * In `npm test`: `test/request/forward/https-upstream.test.ts` tests TLS in place of this file.
 */
import { useTls } from '../../support/backend-tls.ts';
// The tests with cleartext targets run here again over TLS.
import './answered-upload.test.ts';
import './broken-backend.test.ts';
import './forwarded-bytes.test.ts';
import './slow-clients.test.ts';
import './upgrade/forward-upgrade.test.ts';
import './upstream/upstreams.test.ts';

useTls();
