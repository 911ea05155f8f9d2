import { describe, expect, it } from 'vitest';
import { parseResponseHead } from '../../../gateway/request/transport/response-head.ts';

const parse = (lines: readonly string[], method = 'GET') =>
  parseResponseHead([...lines, '', ''].join('\r\n'), method, 256);

describe('the head of a response', () => {
  it('is parsed to its status and its unchanged fields', () => {
    expect(parse(['HTTP/1.1 201 Créated', 'X-A:b', 'x-a: \t c d \t', 'Empty:', 'Content-Length: 3'])).toEqual(
      {
        kind: 'final',
        status: 201,
        fields: ['X-A', 'b', 'x-a', 'c d', 'Empty', '', 'Content-Length', '3'],
        framing: 'length',
        contentLength: 3,
        persistent: true,
        keepAlive: undefined,
      },
    );
  });

  it('keeps octets that are not ASCII, including a no-break space at the start or end', () => {
    expect(parse(['HTTP/1.1 200 OK', 'X: \xa0é\xff'])).toMatchObject({ fields: ['X', '\xa0é\xff'] });
  });

  it('has its fields without the blanks before their colons', () => {
    expect(parse(['HTTP/1.1 200 OK', 'X-A \t: b : c', 'Connection : close'])).toMatchObject({
      fields: ['X-A', 'b : c', 'Connection', 'close'],
      persistent: false,
    });
  });

  it.each(['HTTP/1.1 200', 'HTTP/1.1 200 ', 'HTTP/1.0 200 OK', 'HTTP/1.1 599 X'])(
    'may begin with %j',
    (line) => {
      expect(parse([line])).toMatchObject({ kind: 'final' });
    },
  );

  it.each([100, 102, 103, 199])('is an interim response with status %i', (status) => {
    expect(parse([`HTTP/1.1 ${status} X`, 'Link: <a>'])).toEqual({
      kind: 'interim',
      status,
      fields: ['Link', '<a>'],
    });
  });

  it.each(['HTTP/1.1 200 OK', 'HTTP/1.1 103 X'])(
    'may have the largest number of fields after %j, and not one more',
    (line) => {
      const fields = (count: number) => Array.from({ length: count }, (_, i) => `X-${i}: a`);
      expect(parse([line, ...fields(256)])).not.toMatchObject({ kind: 'malformed' });
      expect(parse([line, ...fields(257)])).toMatchObject({ kind: 'malformed' });
    },
  );

  it.each([
    ['another protocol', ['HTTP/2 200 OK']],
    ['another version', ['HTTP/1.2 200 OK']],
    ['a protocol in lower case', ['http/1.1 200 OK']],
    ['two spaces', ['HTTP/1.1  200 OK']],
    ['a status of two digits', ['HTTP/1.1 20 OK']],
    ['a status of four digits', ['HTTP/1.1 2000 OK']],
    ['status 000', ['HTTP/1.1 000 OK']],
    ['status 099', ['HTTP/1.1 099 OK']],
    ['status 101 without a request for it', ['HTTP/1.1 101 X', 'Upgrade: websocket']],
    ['status 600', ['HTTP/1.1 600 OK']],
    ['a control character in the reason', ['HTTP/1.1 200 a\x01b']],
    ['a field without a colon', ['HTTP/1.1 200 OK', 'X']],
    ['a field without a name', ['HTTP/1.1 200 OK', ': a']],
    ['a space before the colon of a length', ['HTTP/1.1 200 OK', 'Content-Length : 1']],
    ['a tab before the colon of a transfer coding', ['HTTP/1.1 200 OK', 'transfer-encoding\t: chunked']],
    ['a space in a name', ['HTTP/1.1 200 OK', 'X Y: a']],
    ['a letter in a name that is no ASCII', ['HTTP/1.1 200 OK', 'Xé: a']],
    ['a folded line', ['HTTP/1.1 200 OK', 'X: a', ' b']],
    ['a folded line under the status', ['HTTP/1.1 200 OK', ' X: a']],
    ['a bare CR', ['HTTP/1.1 200 OK', 'X: a\rY: b']],
    ['a bare LF', ['HTTP/1.1 200 OK', 'X: a\nY: b']],
    ['a NUL', ['HTTP/1.1 200 OK', 'X: a\0b']],
    ['a DEL', ['HTTP/1.1 200 OK', 'X: a\x7fb']],
  ])('is malformed with %s', (_what, lines) => {
    expect(parse(lines)).toMatchObject({ kind: 'malformed' });
  });
});

describe('the report about a malformed head', () => {
  it.each([
    ['the octet 0x01 in the value of the field X-Bad', ['A: b', 'X-Bad: secret\x01value']],
    ['the octet 0x0a in the value of the field X-Bad', ['X-Bad: secret\nB: secret']],
    ['the octet 0x0d in the value of the field X-Bad', ['X-Bad: secret\rB: secret']],
    ['the octet 0x20 in the name of the field X', ['A: b', 'X Y: secret']],
    ['the octet 0xe9 in the name of the field X', ['Xé: secret']],
    ['the octet 0x20 in the name of the field Content-Length', ['Content-Length : 5']],
    ['the octet 0x20 after the field X-Bad, in place of a name', ['X-Bad: secret', ' secret']],
    ['the octet 0x3a after the status line, in place of a name', [': secret']],
    ['a line without a colon after the field X-Bad', ['X-Bad: a', 'secret']],
  ])('is: %s', (cause, fields) => {
    expect(parse(['HTTP/1.1 200 OK', ...fields])).toEqual({ kind: 'malformed', cause });
  });

  it.each([
    ['the octet 0x01 in the status line', 'HTTP/1.1 200 a\x01b'],
    ['a malformed status line', 'HTTP/1.2 200 OK'],
  ])('is: %s', (cause, statusLine) => {
    expect(parse([statusLine, 'X: secret'])).toEqual({ kind: 'malformed', cause });
  });
});

describe('how the body ends', () => {
  it.each([
    ['GET', 200, ['Content-Length: 0'], 'length', true],
    ['GET', 200, ['content-length: 007'], 'length', true],
    ['GET', 200, ['Transfer-Encoding: Chunked'], 'chunked', true],
    ['GET', 200, [], 'until_close', false],
    // A response with one of the following heads has no body, but some backends wrongly send a body after the
    // head.
    ['HEAD', 200, ['Content-Length: 7'], 'none', false],
    ['HEAD', 200, ['Transfer-Encoding: chunked'], 'none', false],
    ['HEAD', 200, [], 'none', false],
    ['HEAD', 204, [], 'none', false],
    ['GET', 204, [], 'none', true],
    ['GET', 204, ['Content-Length: 0'], 'none', true],
    ['GET', 204, ['Content-Length: 7'], 'none', false],
    ['POST', 204, ['Transfer-Encoding: chunked'], 'none', false],
    ['GET', 304, [], 'none', true],
    ['GET', 304, ['Content-Length: 7'], 'none', false],
    ['GET', 304, ['Transfer-Encoding: chunked'], 'none', false],
    ['GET', 205, ['Content-Length: 0'], 'length', true],
  ])('after %s with %i and %j: %s', (method, status, fields, framing, persistent) => {
    expect(parse([`HTTP/1.1 ${status} X`, ...fields], method)).toMatchObject({ framing, persistent });
  });

  it.each([
    ['two lengths', ['Content-Length: 2', 'Content-Length: 2']],
    ['a list of lengths', ['Content-Length: 2, 2']],
    ['a signed length', ['Content-Length: +2']],
    ['a negative length', ['Content-Length: -2']],
    ['a hexadecimal length', ['Content-Length: 0x2']],
    ['an empty length', ['Content-Length:']],
    ['a length beyond what a number can hold', ['Content-Length: 9999999999999999']],
    ['a length and a coding', ['Content-Length: 2', 'Transfer-Encoding: chunked']],
    ['another coding', ['Transfer-Encoding: gzip']],
    ['another coding before chunks', ['Transfer-Encoding: gzip, chunked']],
    ['chunks twice', ['Transfer-Encoding: chunked, chunked']],
    ['two codings', ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked']],
    ['an empty coding', ['Transfer-Encoding:']],
    ['a vertical tab in front of a coding', ['Transfer-Encoding: \x0bchunked']],
    ['a no-break space in front of a coding', ['Transfer-Encoding: \xa0chunked']],
  ])('is malformed with %s', (_what, fields) => {
    expect(parse(['HTTP/1.1 200 OK', ...fields])).toMatchObject({ kind: 'malformed' });
    expect(parse(['HTTP/1.1 200 OK', ...fields], 'HEAD')).toMatchObject({ kind: 'malformed' });
  });

  it('is malformed with a Transfer-Encoding in HTTP/1.0', () => {
    expect(parse(['HTTP/1.0 200 OK', 'Transfer-Encoding: chunked'])).toMatchObject({ kind: 'malformed' });
  });
});

describe('whether the connection persists', () => {
  it.each([
    ['HTTP/1.1', [], true],
    ['HTTP/1.1', ['Connection: close'], false],
    ['HTTP/1.1', ['Connection: X-A, CLOSE'], false],
    ['HTTP/1.1', ['Connection: X-A', 'Connection: close'], false],
    ['HTTP/1.1', ['Connection: closed'], true],
    ['HTTP/1.0', [], false],
    ['HTTP/1.0', ['Connection: Keep-Alive'], true],
    ['HTTP/1.0', ['Connection: keep-alive, close'], false],
  ])('%s with %j: %s', (version, fields, persistent) => {
    const head = parse([`${version} 200 OK`, 'Content-Length: 0', 'Keep-Alive: timeout=5', ...fields]);
    expect(head).toMatchObject({ persistent, keepAlive: 'timeout=5' });
  });
});
