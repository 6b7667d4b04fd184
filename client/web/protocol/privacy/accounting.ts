/** Costs of releases in both units of privacy: added up, and composed, as Python's `accounting`. */

import { line, map, type Of, real } from "../fields.ts";
import { composedEpsilon } from "./composition.ts";
import { total } from "./elementary.ts";
import { type PrivacyEvent, unit } from "./events.ts";

/** One release of one step, counted in one unit, as it is published and kept. */
export const release = map({
  step: line(64),
  unit,
  epsilon: real(0),
  delta: real(0, 1),
  mechanism: line(256),
});
export type Release = Of<typeof release>;

/** A release and its event: what a ledger keeps. */
export interface Expense {
  readonly release: Release;
  readonly event: PrivacyEvent;
}

/** An (ε, δ) guarantee of differential privacy. */
export interface Cost {
  readonly epsilon: number;
  readonly delta: number;
}

/** Default δ of a composed ε, unless a release states a larger one. */
const TOLD_DELTA = 1e-6;
/** Share of the added ε below which the composed one is reported. */
const LESS = 1 - 1e-5;

/** Return the sum of the ε that expenses of one unit state. */
export function addedEpsilon(spent: readonly Expense[]): number {
  return total(spent.map((each) => each.release.epsilon));
}

/** Return the sum of the δ that expenses of one unit state, at most 1. */
export function statedDelta(spent: readonly Expense[]): number {
  return Math.min(1, total(spent.map((each) => each.release.delta)));
}

/**
 * Return an ε such that expenses of one unit together are (ε, δ)-differentially private.
 *
 * It is the smaller of the composed ε of their events and, where their stated δ leaves it open, of
 * their sum; infinite if no bound is known.
 */
export function epsilonAt(delta: number, spent: readonly Expense[]): number {
  delta = Math.min(delta, 1);
  const events = spent.map((each) => each.event);
  const composed = composedEpsilon(events, delta);
  return statedDelta(spent) > delta ? composed : Math.min(composed, addedEpsilon(spent));
}

/** Return the joint cost of expenses of one unit, as it is reported everywhere. */
export function composedCost(spent: readonly Expense[]): Cost {
  const added = addedEpsilon(spent);
  const delta = Math.max(TOLD_DELTA, ...spent.map((each) => each.release.delta));
  const composed = epsilonAt(delta, spent);
  return composed < LESS * added
    ? { epsilon: composed, delta }
    : { epsilon: added, delta: statedDelta(spent) };
}
