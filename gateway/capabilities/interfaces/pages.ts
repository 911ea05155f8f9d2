import type { ComponentChildren } from 'preact';
import type { Action } from '../../admin/pages/browser/actions.js';
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
  /** @param button makes a button that opens the dialog of an action on the key; nothing for a token that may not write */
  notesOn(key: Key, button: (action: Action) => unknown): unknown;
}
