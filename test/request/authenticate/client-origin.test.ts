import { describe, expect, it } from 'vitest';
import { clientOrigin, type OriginFields } from '../../../gateway/request/authenticate/client-origin.ts';
import { compileRanges } from '../../../gateway/shared/addresses/address-ranges.ts';

function originOf(
  fields: Partial<OriginFields>,
  trustedProxies = ['10.0.0.0/8', '192.0.2.7', '2001:db8::/32'],
) {
  return clientOrigin(
    {
      peerAddress: '10.0.0.1',
      proto: 'http',
      xForwardedFor: undefined,
      xForwardedHost: undefined,
      xForwardedProto: undefined,
      ...fields,
    },
    compileRanges(trustedProxies),
  );
}

describe('clientOrigin', () => {
  it('ignores the forwarding fields when no proxy is trusted', () => {
    const forged = { xForwardedFor: '1.2.3.4', xForwardedHost: 'evil', xForwardedProto: 'https' };
    expect(originOf(forged, [])).toEqual({
      address: '10.0.0.1',
      trustedPeer: false,
      forwardedFor: '10.0.0.1',
      forwardedHost: undefined,
      forwardedProto: 'http',
    });
  });

  it('ignores the forwarding fields of a peer that is not trusted', () => {
    const origin = originOf({ peerAddress: '198.51.100.1', xForwardedFor: '1.2.3.4' });
    expect(origin.address).toBe('198.51.100.1');
    expect(origin.forwardedFor).toBe('198.51.100.1');
  });

  it.each([
    ['203.0.113.9', '203.0.113.9'],
    ['1.2.3.4, 203.0.113.9', '203.0.113.9'],
    ['1.2.3.4, 203.0.113.9, 10.9.9.9', '203.0.113.9'],
    ['203.0.113.9, 192.0.2.7', '203.0.113.9'],
    ['10.1.1.1, 10.2.2.2', '10.1.1.1'],
    ['1.2.3.4, nonsense, 10.2.2.2', '10.2.2.2'],
    ['2001:db9::1, 2001:db8::1', '2001:db9::1'],
    [' 203.0.113.9\t,\t10.9.9.9 ', '203.0.113.9'],
    ['203.0.113.9\u00a0', '10.0.0.1'],
    ['nonsense', '10.0.0.1'],
    ['203.0.113.7:51234', '203.0.113.7'],
    ['[2001:db9::1]:4711', '2001:db9::1'],
    ['[2001:db9::1]', '2001:db9::1'],
    ['[::ffff:203.0.113.7]:80', '203.0.113.7'],
    ['1.2.3.4, 203.0.113.9:1 ,\t10.9.9.9:65535', '203.0.113.9'],
    ['203.0.113.9, , 10.9.9.9,', '203.0.113.9'],
    ['203.0.113.7:', '10.0.0.1'],
    ['203.0.113.7:1:2', '10.0.0.1'],
    ['203.0.113.7:651234', '10.0.0.1'],
    ['[2001:db9::1', '10.0.0.1'],
    ['client.example:80', '10.0.0.1'],
    [undefined, '10.0.0.1'],
  ])('reads %j from the right, across trusted proxies, as %s', (xForwardedFor, address) => {
    expect(originOf({ xForwardedFor }).address).toBe(address);
  });

  it.each([
    ['nonsense', { entry: 'nonsense', proxy: '10.0.0.1' }],
    ['1.2.3.4, unknown ,10.2.2.2:1', { entry: 'unknown', proxy: '10.2.2.2' }],
    ['nonsense, 203.0.113.9', undefined],
    ['', undefined],
    [undefined, undefined],
  ])(
    'names the entry of %j that should have been the address of the client',
    (xForwardedFor, unreadEntry) => {
      expect(originOf({ xForwardedFor }).unreadEntry).toEqual(unreadEntry);
      expect(originOf({ xForwardedFor, peerAddress: '198.51.100.1' }).unreadEntry).toBeUndefined();
    },
  );

  it('extends the chain of a trusted proxy and keeps its host and scheme', () => {
    expect(
      originOf({ xForwardedFor: '203.0.113.9', xForwardedHost: 'shop.example', xForwardedProto: 'https' }),
    ).toEqual({
      address: '203.0.113.9',
      trustedPeer: true,
      forwardedFor: '203.0.113.9, 10.0.0.1',
      forwardedHost: 'shop.example',
      forwardedProto: 'https',
    });
  });

  it('gives the IPv4 address of an IPv4 peer of a dual-stack listener', () => {
    expect(originOf({ peerAddress: '::ffff:10.0.0.1', xForwardedFor: '::ffff:203.0.113.9' }).address).toBe(
      '203.0.113.9',
    );
  });
});
