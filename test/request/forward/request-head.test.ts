import { describe, expect, it } from 'vitest';
import { requestHead } from '../../../gateway/request/forward/request-head.ts';

const ours = ['X-Key-Id', 'acme'];

const host = 'api.test';

/** @returns the fields after `Host`, which is always the first field */
function forwarded(rawHeaders: string[], keepForwarded = false): string[] {
  const { fields } = requestHead({ rawHeaders, requestFields: ours, keepForwarded, host });
  expect(fields.slice(0, 2)).toEqual(['Host', host]);
  return fields.slice(2);
}

describe('the head of a forwarded request', () => {
  it('keeps fields, their order and spelling, and ends with those of the gateway', () => {
    const raw = ['ACCEPT', 'a', 'Cookie', '1', 'Cookie', '2', 'Via', '1.0 old'];
    expect(forwarded(raw)).toEqual([...raw, ...ours]);
  });

  it.each([
    [['traceparent', '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', 'tracestate', 'a=1,b=2']],
    [['TraceParent', 'malformed', 'tracestate', '']],
    [['traceparent', 'one', 'traceparent', 'two', 'tracestate', 'a=1', 'tracestate', 'a=2']],
  ])('leaves the fields of a trace unchanged: %j', (raw) => {
    expect(forwarded(raw)).toEqual([...raw, ...ours]);
  });

  it('drops the fields that a capability replaces, in any spelling and each time', () => {
    const rawHeaders = ['TraceParent', 'one', 'a', 'b', 'traceparent', 'two', 'tracestate', 'c=d'];
    const replaced = new Set(['traceparent']);
    const { fields } = requestHead({ rawHeaders, requestFields: [], keepForwarded: false, host, replaced });
    expect(fields).toEqual(['Host', host, 'a', 'b', 'tracestate', 'c=d']);
  });

  it.each([
    [
      ['Sec-WebSocket-Protocol', 'a,b'],
      ['Sec-WebSocket-Protocol', 'a,b'],
    ],
    [
      [
        'Sec-WebSocket-Protocol',
        'a, tollgate',
        'Sec-WebSocket-Protocol',
        'TOLLGATE.bearer.x,b ,tollgate.bearer.y,  c',
      ],
      ['Sec-WebSocket-Protocol', 'a', 'Sec-WebSocket-Protocol', 'b, c'],
    ],
    [['sec-websocket-protocol', 'tollgate,tollgate.bearer.x'], []],
  ])('drops the subprotocols for the gateway, and keeps the others in order: %j', (raw, kept) => {
    expect(forwarded(raw)).toEqual([...kept, ...ours]);
  });

  it.each([
    'X-Key-Id',
    'x-key-id',
    'X_Key_Id',
    'X.Key.Id',
    'x_key-ID',
    'X-Request-Id',
    'X_Request_Id',
    'X-Plan',
    'x.plan',
    'X-Forwarded-For',
    'X_Forwarded_For',
    'X-Forwarded-Host',
    'X-Forwarded-Proto',
    'X-Forwarded-Anything',
    'x.forwarded_anything',
    'Content_Length',
    'Transfer_Encoding',
  ])('drops a client-sent %s', (name) => {
    expect(forwarded([name, 'forged', 'Accept', 'a'])).toEqual(['Accept', 'a', ...ours]);
  });

  it.each([
    'X-HTTP-Method-Override',
    'X-HTTP-Method',
    'X-Method-Override',
    'X-Original-URL',
    'X-Rewrite-URL',
    'SCRIPT_NAME',
    'Path-Info',
    'X-Host',
    'X-Original-Host',
    'X-HTTP-Host-Override',
    'X-Real-IP',
    'X_Real_IP',
    'x.real_ip',
    'True-Client-IP',
    'TRUE_CLIENT_IP',
    'Client-IP',
    'Client_IP',
    'X-Client-IP',
    'X-Cluster-Client-IP',
    'CF-Connecting-IP',
    'Fastly-Client-IP',
    'Proxy',
    'PROXY',
    'X_HTTP_Method_Override',
  ])(
    'drops %s, with which a client could override the path, method or address that the gateway used',
    (name) => {
      expect(forwarded([name, 'forged', 'Accept', 'a'])).toEqual(['Accept', 'a', ...ours]);
    },
  );

  it.each(['X-Trace', 'x_trace', 'X-Original', 'X-HTTP', 'Proxy-Hint', 'X-Real', 'Accept_Language'])(
    'keeps %s, which no backend mistakes for these fields',
    (name) => {
      expect(forwarded([name, 'theirs'])).toEqual([name, 'theirs', ...ours]);
    },
  );

  it.each([
    'Connection',
    'Keep-Alive',
    'Proxy-Connection',
    'Proxy-Authenticate',
    'Proxy-Authorization',
    'TE',
    'Trailer',
    'Upgrade',
    'Expect',
    'Authorization',
    'AUTHORIZATION',
  ])('drops %s, which is only for the gateway', (name) => {
    expect(forwarded([name, 'x', 'Accept', 'a'])).toEqual(['Accept', 'a', ...ours]);
  });

  it('drops what Connection names, in any line and spelling, but not Host, framing or the fields of the gateway', () => {
    const raw = [
      ['Content-Length', '2', 'X-Hop', '1', 'Other', '2', 'Accept', 'a'],
      ['Connection', 'x-HOP , close', 'connection', 'other, host, content-length, x-key-id'],
    ].flat();
    expect(forwarded(raw)).toEqual(['Content-Length', '2', 'Accept', 'a', ...ours]);
  });

  it('trims the names in Connection by HTTP whitespace only: space and tab', () => {
    const raw = ['Connection', '\tx-tab\t, x-nbsp\u00a0', 'X-Tab', '1', 'X-Nbsp', '2'];
    expect(forwarded(raw)).toEqual(['X-Nbsp', '2', ...ours]);
  });

  it('forwards Forwarded from a trusted proxy only', () => {
    expect(forwarded(['Forwarded', 'for=1.2.3.4'])).toEqual(ours);
    expect(forwarded(['Forwarded', 'for=1.2.3.4'], true)).toEqual(['Forwarded', 'for=1.2.3.4', ...ours]);
  });

  it('has one Host field, never the field of the client', () => {
    expect(forwarded(['Accept', 'a', 'HOST', 'evil', 'Connection', 'host'])).toEqual([
      'Accept',
      'a',
      ...ours,
    ]);
  });

  it('is parsed for framing and expectation', () => {
    const raw = ['Content-Length', '17', 'Expect', '100-continue'];
    expect(requestHead({ rawHeaders: raw, requestFields: [], keepForwarded: false, host })).toEqual({
      fields: ['Host', host, 'Content-Length', '17'],
      contentLength: 17,
      chunked: false,
      expectsContinue: true,
    });
    const chunked = requestHead({
      rawHeaders: ['Transfer-Encoding', 'chunked'],
      requestFields: [],
      keepForwarded: false,
      host,
    });
    expect(chunked).toEqual({
      fields: ['Host', host],
      contentLength: 0,
      chunked: true,
      expectsContinue: false,
    });
  });
});
