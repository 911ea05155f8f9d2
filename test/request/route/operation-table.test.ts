import { describe, expect, it } from 'vitest';
import { createOperationTable, routeRequest } from '../../../gateway/request/route/operation-table.ts';
import type { Operation } from '../../../gateway/shared/model.ts';

const described: readonly Omit<Operation, 'upstream'>[] = [
  { id: 'listPets', method: 'GET', template: '/pets' },
  { id: 'createPet', method: 'POST', template: '/pets', stability: 'beta' },
  { id: 'getPet', method: 'GET', template: '/pets/{petId}' },
  { id: 'getOwn', method: 'GET', template: '/pets/mine' },
  { id: 'putToy', method: 'PUT', template: '/pets/{petId}/toys/{toyId}' },
  { id: 'listToys', method: 'GET', template: '/pets/mine/toys' },
  { id: 'headPet', method: 'HEAD', template: '/pets/{petId}/photo' },
  { id: 'getPhoto', method: 'GET', template: '/pets/{petId}/photo' },
  { id: 'getCall', method: 'GET', template: '/calls/{callId}.json' },
  { id: 'anyCall', method: 'GET', template: '/calls/{callId}' },
  { id: 'postCall', method: 'POST', template: '/calls/{id}' },
  { id: 'getReport', method: 'GET', template: '/reports/{year}-{month}' },
  { id: 'cancel', method: 'POST', template: '/{name}:cancel' },
  { id: 'leftFirst', method: 'GET', template: '/x/{b}/{c}/d' },
  { id: 'rightFirst', method: 'GET', template: '/{a}/y/z/{d}' },
  { id: 'folder', method: 'GET', template: '/folder/' },
  { id: 'getFile', method: 'GET', template: '/files/{path+}' },
  { id: 'getVersion', method: 'GET', template: '/files/{fileId}/versions' },
  { id: 'getReadme', method: 'GET', template: '/files/readme' },
  { id: 'getDraft', method: 'GET', template: '/files/draft-{+path}' },
  { id: 'postFile', method: 'POST', template: '/files/{id}' },
];
const operations = described.map((operation) => ({ ...operation, upstream: 'store' }));
const table = createOperationTable(operations, '/v1', () => '');

function routed(method: string, path: string): string {
  const route = routeRequest(table, method, path);
  return route.kind === 'operation' ? route.offered.operation.id : route.kind;
}

describe('routeRequest', () => {
  it.each([
    ['GET', '/v1/pets', 'listPets'],
    ['HEAD', '/v1/pets', 'listPets'],
    ['POST', '/v1/pets', 'createPet'],
    ['GET', '/v1/pets/1', 'getPet'],
    ['HEAD', '/v1/pets/1', 'getPet'],
    ['GET', '/v1/pets/mine', 'getOwn'],
    ['PUT', '/v1/pets/1/toys/2', 'putToy'],
    ['PUT', '/v1/pets/mine/toys/2', 'putToy'],
    ['GET', '/v1/pets/mine/toys', 'listToys'],
    ['HEAD', '/v1/pets/1/photo', 'headPet'],
    ['GET', '/v1/pets/1/photo', 'getPhoto'],
    ['GET', '/v1/calls/CA1.json', 'getCall'],
    ['GET', '/v1/calls/.json', 'anyCall'],
    ['GET', '/v1/calls/CA1.json.gz', 'anyCall'],
    ['POST', '/v1/calls/CA1', 'postCall'],
    ['GET', '/v1/reports/2026-11', 'getReport'],
    ['POST', '/v1/order-1:cancel', 'cancel'],
    ['GET', '/v1/x/y/z/d', 'leftFirst'],
    ['GET', '/v1/w/y/z/d', 'rightFirst'],
    ['GET', '/v1/folder/', 'folder'],
    ['GET', '/v1/files/a/b/c', 'getFile'],
    ['GET', '/v1/files/a/', 'getFile'],
    ['GET', '/v1/files/readme/x', 'getFile'],
    ['GET', '/v1/files/a/versions', 'getVersion'],
    ['GET', '/v1/files/a/versions/1', 'getFile'],
    ['GET', '/v1/files/readme', 'getReadme'],
    ['GET', '/v1/files/draft-1', 'getDraft'],
    ['GET', '/v1/files/draft-1/2', 'getDraft'],
    ['GET', '/v1/files/draft-', 'method_not_allowed'],
    ['POST', '/v1/files/a', 'postFile'],
    ['GET', '/v1/files/a', 'method_not_allowed'],
  ])('%s %s is %s', (method, path, id) => {
    expect(routed(method, path)).toBe(id);
  });

  it.each([
    '/pets',
    '/v1',
    '/v1/',
    '/v1/pets/',
    '/v1/pets//',
    '/V1/pets',
    '/v1/Pets',
    '/v1/%70ets',
    '/v1/pets/1/',
    '/v1/pets/1/toys',
    '/v1/petsx',
    '',
    '/',
    '/v1/reports/2026-',
    '/v1/reports/-11',
    '/v1/reports/2026',
    '/v1/folder',
    '/v1/calls/',
    '/v1/files',
    '/v1/files/',
  ])('does not match %j, because paths are compared byte for byte', (path) => {
    expect(routed('GET', path)).toBe('not_found');
  });

  it('gives the methods of a path for another method', () => {
    expect(routeRequest(table, 'DELETE', '/v1/pets')).toEqual({
      kind: 'method_not_allowed',
      allow: 'GET, POST, HEAD',
    });
    expect(routeRequest(table, 'POST', '/v1/pets/mine')).toEqual({
      kind: 'method_not_allowed',
      allow: 'GET, HEAD',
    });
  });

  it('takes names of Object.prototype neither as paths nor as methods', () => {
    expect(routed('constructor', '/v1/pets')).toBe('method_not_allowed');
    expect(routed('GET', '__proto__')).toBe('not_found');
  });
});
