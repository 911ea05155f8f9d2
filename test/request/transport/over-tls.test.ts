/**
 * @module-tag full
 *
 * In `npm test`: `test/request/transport/target-tls.test.ts` tests TLS in place of this file.
 */
import { useTls } from '../../support/backend-tls.ts';
// The tests with cleartext connections run here again over TLS.
import './connection-pool.test.ts';
import './misbehaving-backend.test.ts';

useTls();
