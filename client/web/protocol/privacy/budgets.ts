/** Budgets of a phone: how much privacy it may spend in a phase, in 366 days and in its life. */

import { UNITS, type Unit } from "./events.ts";

/** Periods that a budget is for, shorter ones first. */
export const SPANS = ["phase", "year", "life"] as const;
export type Span = (typeof SPANS)[number];

/** Names of the periods in a sentence. */
export const OVER: Readonly<Record<Span, string>> = {
  phase: "of the phase",
  year: "of this year",
  life: "of this phone's life",
};

const PREFIX = { phase: "", year: "yearly_", life: "lifetime_" } as const;
const WHOSE = { recording: "", phone: "phone_" } as const;
type Prefix = (typeof PREFIX)[Span];
type Whose = (typeof WHOSE)[Unit];

/** One budget, by the names of its limits of ε and δ, which are names of rules. */
export interface LedgerBudget {
  readonly span: Span;
  readonly unit: Unit;
  readonly epsilon: `largest_${Prefix}${Whose}epsilon`;
  readonly delta: `largest_${Prefix}${Whose}delta`;
}

/** All budgets, those of shorter periods first. */
export const BUDGETS: readonly LedgerBudget[] = SPANS.flatMap((span) =>
  UNITS.map((unit) => ({
    span,
    unit,
    epsilon: `largest_${PREFIX[span]}${WHOSE[unit]}epsilon` as const,
    delta: `largest_${PREFIX[span]}${WHOSE[unit]}delta` as const,
  })),
);

/** A phone's standing with one of its budgets. */
export interface Standing {
  readonly span: Span;
  readonly unit: Unit;
  /** Joint ε of everything that was spent, at `delta`. */
  readonly epsilon: number;
  /** Limit of ε; infinite where there is none. */
  readonly largestEpsilon: number;
  /** Limit of δ; the default one where there is none. */
  readonly delta: number;
}
