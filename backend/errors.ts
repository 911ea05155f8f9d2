/** The gateway uses the same codes with the same meanings. */
const statusByCode = {
  invalid_request: 400,
  not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  payload_too_large: 413,
  unsupported_media_type: 415,
  headers_too_large: 431,
  internal: 500,
  storage_full: 507,
} as const;

export type ErrorCode = keyof typeof statusByCode;

/** The Error body of the specification, whose `status` equals the HTTP status. */
export interface ErrorBody {
  readonly code: ErrorCode;
  readonly message: string;
  readonly status: number;
}

export function createErrorBody(code: ErrorCode, message: string): ErrorBody {
  return { code, message, status: statusByCode[code] };
}
