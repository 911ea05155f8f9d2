/**
 * The closed catalogue of errors, by the `code` for clients: the HTTP status, a public text, and the side that must act so that the request
 * succeeds.
 */
export const catalogue =
  /** @satisfies {Readonly<Record<string, { readonly status: number, readonly fault: 'client' | 'gateway' | 'upstream', readonly message: string }>>} */ (
    /** @type {const} */ ({
      invalid_request: { status: 400, fault: 'client', message: 'The request is malformed.' },
      missing_key: {
        status: 401,
        fault: 'client',
        message: 'An API key is required: send "Authorization: Bearer <API_KEY>".',
      },
      invalid_key: { status: 401, fault: 'client', message: 'The API key is not valid.' },
      invalid_signature: {
        status: 401,
        fault: 'client',
        message: 'The signature of the report is missing or not valid.',
      },
      address_not_allowed: {
        status: 403,
        fault: 'client',
        message: 'The API key may not be used from this address.',
      },
      operation_not_allowed: {
        status: 403,
        fault: 'client',
        message: 'The API key may not call this operation.',
      },
      not_found: { status: 404, fault: 'client', message: 'There is no such path.' },
      method_not_allowed: {
        status: 405,
        fault: 'client',
        message: 'The path does not offer this method; the Allow header lists its methods.',
      },
      request_timeout: { status: 408, fault: 'client', message: 'The request did not arrive in time.' },
      gone: {
        status: 410,
        fault: 'client',
        message: 'This operation was removed; a Link header names its successor if there is one.',
      },
      payload_too_large: { status: 413, fault: 'client', message: 'The request body is too large.' },
      uri_too_long: { status: 414, fault: 'client', message: 'The request target is too long.' },
      expectation_failed: {
        status: 417,
        fault: 'client',
        message: 'Only "Expect: 100-continue" is understood.',
      },
      rate_limited: {
        status: 429,
        fault: 'client',
        message: 'The rate limit is exceeded; retry after the time in the Retry-After header.',
      },
      too_many_concurrent: {
        status: 429,
        fault: 'client',
        message:
          'The API key has as many requests in progress as it may have at the same time; retry when one of them has ended.',
      },
      key_banned: {
        status: 429,
        fault: 'client',
        message:
          'The API key is banned for a time, because it kept sending after 429; retry after the time in the Retry-After header.',
      },
      headers_too_large: { status: 431, fault: 'client', message: 'The header fields are too large.' },
      internal: { status: 500, fault: 'gateway', message: 'The gateway failed on this request.' },
      method_not_implemented: {
        status: 501,
        fault: 'client',
        message: 'The gateway does not know this method.',
      },
      upstream_failed: {
        status: 502,
        fault: 'upstream',
        message: 'The backend gave no valid response.',
      },
      store_unavailable: {
        status: 503,
        fault: 'gateway',
        message: 'The rate limit cannot be checked now; retry after the time in the Retry-After header.',
      },
      too_many_uploads: {
        status: 503,
        fault: 'client',
        message: 'The API key has too many unfinished request bodies; retry later.',
      },
      too_many_websockets: {
        status: 503,
        fault: 'client',
        message: 'The API key has too many open WebSockets; close one before opening another.',
      },
      upstream_unavailable: {
        status: 503,
        fault: 'upstream',
        message: 'The backend cannot be reached now; retry after the time in the Retry-After header.',
      },
      upstream_timeout: { status: 504, fault: 'upstream', message: 'The backend did not answer in time.' },
    })
  );
