import { useTls } from './pool-fixture.ts';
// The tests of cleartext connections run here again over TLS.
import './connection-pool.test.ts';
import './misbehaving-backend.test.ts';

useTls();
