import { useTls } from './pool-fixture.ts';
// What holds for connections in cleartext holds over TLS: their tests run here once more.
import './connection-pool.test.ts';
import './misbehaving-backend.test.ts';

useTls();
