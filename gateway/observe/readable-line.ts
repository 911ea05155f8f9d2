/** One entry of the log as a person at a terminal reads it: an access line in words, anything else with its details. */
export function readableLine(entry: Record<string, unknown>): string {
  return 'requestId' in entry && 'status' in entry ? accessText(entry) : withDetails(entry);
}

/** For example `200 GET /v1/pets  acme (free) admitted, minute 59/60  1.9 ms of 2.8 ms at 127.0.0.1:3000`. */
function accessText(entry: Record<string, unknown>): string {
  const { status, method, path, error, keyId, plan, address, decision, source, window, limit, remaining } =
    entry;
  const request = [status, method, path, error].filter((part) => part !== undefined).join(' ');
  const caller = keyId === undefined ? address : `${keyId} (${plan})`;
  const rateLimit = `${decision ?? 'rejected'}${source === 'local' ? ' locally' : ''}, ${window} ${remaining}/${limit}`;
  const time =
    entry.target === undefined
      ? `${entry.totalMs ?? '–'} ms`
      : `${entry.upstreamMs} ms of ${entry.totalMs} ms at ${entry.target}`;
  return `${request}  ${caller} ${rateLimit}  ${time}  ${entry.requestId}`;
}

function withDetails({ level: _level, time: _time, msg, ...details }: Record<string, unknown>): string {
  return Object.keys(details).length === 0 ? String(msg) : `${msg} ${JSON.stringify(details)}`;
}
