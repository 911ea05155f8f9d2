import type { ComponentChildren } from 'preact';
import type { PageProps } from '../../admin/pages/browser/live.js';
import type { BodyOf } from '../../admin/wires/api-types.ts';

/** A page of operators. The key `g` and then the letter open a page that is in the navigation. */
export interface Page {
  component(props: PageProps): ComponentChildren;
  /** @param params the parameters of the path */
  title(params: Readonly<Record<string, string>>): string;
  readonly nav?: { readonly text: string; readonly letter: string };
  /** The name of the page with the list that contains this page. */
  readonly parent?: string;
}

export type Plan = BodyOf<'/plans'>['plans'][number];
export type Simulation = BodyOf<'/simulate', 'POST'>;

/** Limits that the operator tries on the page, by the name of the window. */
export type TriedLimits = Record<string, number>;

/** A section below a plan, for the limits that the operator tries. */
export type PlanSection = (props: {
  readonly present: Plan;
  readonly tried: TriedLimits;
  readonly query: URLSearchParams;
  readonly proposals: readonly ProposeMember[];
}) => ComponentChildren;

/** What a capability shows above the list of plans; an empty text if it shows nothing. */
export type PlanNotes = (plans: readonly Plan[]) => unknown;

/** Proposes a member of the plan with a simulated edit; undefined without a proposal. */
export type ProposeMember = (plan: Plan, simulation: Simulation | undefined) => ProposedMember | undefined;

export interface ProposedMember {
  readonly name: keyof Plan;
  /** The line of the configuration, which the operator copies with a button. */
  readonly line: string;
  /** The text of the button. */
  readonly label: string;
  /** What the operator does with the line, and what it does: whole sentences. */
  readonly text: string;
}

export type Key = BodyOf<'/keys/{id}'>;

/** What a capability shows below the windows of a key. */
export interface KeyNotes {
  readonly members: readonly (keyof Key)[];
  notesOn(key: Key): unknown;
}

/** An operator's action on a key. A dialog states the effect before the action. */
export interface KeyAction<Body = object> {
  readonly button: string;
  isOffered(key: Key): boolean;
  /** The title of the dialog, which the id of the key follows. */
  readonly title: string;
  /** @param where the processes, such as "on 3 processes" */
  says(key: Key, where: string): string;
  /** Whether the operator must type the id, because the key stops working. */
  readonly isTyped?: boolean;
  fields?(key: Key): ComponentChildren;
  /** Resolves with the body of the response. */
  run(key: Key, form: FormData): Promise<Body | undefined>;
  /** Describes the result. @param changed the body of the response */
  done(key: Key, form: FormData, changed: Body | undefined): string;
  /** Returns what the dialog shows after the action, because no later response has it. */
  once?(key: Key, changed: Body): ShownOnce;
  /** Whether the action deletes the key. */
  readonly isEnd?: boolean;
}

export interface ShownOnce {
  readonly title: string;
  readonly says: ComponentChildren;
  /** The secret or link, which the operator copies with a button. */
  readonly text: string;
}
