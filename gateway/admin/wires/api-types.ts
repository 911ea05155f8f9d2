import type { AnswerOf, SentTo, Wire } from '../../shared/http/wire.ts';
import type { wires } from './wires.ts';

/** The types of the admin API by method and path template, for the operators' pages. */
type ApiWire = ReturnType<typeof wires>[number];

export type Change = Exclude<Wire['method'], 'GET'>;

type WireAt<Method extends Wire['method'], Path extends string> = Extract<
  ApiWire,
  { readonly method: Method; readonly path: Path }
>;

export type PathOf<Method extends Wire['method']> = Extract<ApiWire, { readonly method: Method }>['path'];

export type BodyOf<Path extends string, Method extends Wire['method'] = 'GET'> = AnswerOf<
  WireAt<Method, Path>
>;

export type SentAt<Path extends string, Method extends Wire['method'] = 'GET'> = SentTo<WireAt<Method, Path>>;

/** A row of a response that has rows for minutes, hours or days. */
export type RowOf<Path extends string> =
  BodyOf<Path> extends { readonly rows: readonly (infer Row extends { readonly at: string })[] }
    ? Row
    : never;

export type State = BodyOf<'/state'>;
export type KeyWindow = BodyOf<'/keys'>['keys'][number]['windows'][number];

/** The response to a change of a key. Only some responses have a secret or kept state. */
export type Changed = BodyOf<'/keys/{id}', 'DELETE'> &
  Partial<Pick<Extract<BodyOf<'/keys/{id}/secrets', 'POST'>, { secret: string }>, 'secret'>>;
