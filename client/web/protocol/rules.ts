/**
 * Names of the rules by which a phone refuses: all that it may report about a refusal.
 *
 * The list is closed (section 10 of docs/protocol.md, Python's `rules`): no other name is sent. No
 * rule depends on what a phone has heard.
 */

import { RefusedError } from "./errors.ts";

/** Every rule, in Python's order. */
export const RULES = [
  "least_phones",
  "largest_phones",
  "largest_noise_crowd",
  "largest_epsilon",
  "largest_delta",
  "largest_yearly_epsilon",
  "largest_yearly_delta",
  "largest_lifetime_epsilon",
  "largest_lifetime_delta",
  "largest_phone_epsilon",
  "largest_phone_delta",
  "largest_yearly_phone_epsilon",
  "largest_yearly_phone_delta",
  "largest_lifetime_phone_epsilon",
  "largest_lifetime_phone_delta",
  "delta",
  "largest_dropout",
  "least_corrupted",
  "least_threshold",
  "least_statistical_security",
  "least_correctness",
  "encoder",
  "dimensions",
  "parameters",
  "sum",
  "unknown_helper",
  "weak_noise",
  "too_few",
  "wrong_offer",
  "proofs",
  "closed",
  "changed",
  "repeated",
  "protocol",
] as const;

/** Reason why a phone refuses. The limits have the names of the limits of `phases/acceptance`. */
export type Rule = (typeof RULES)[number];

/** Return why this phone refuses the summation of a single operator. */
export function refusalOfBell(): RefusedError {
  return refusal("protocol", "this phone takes no part in Bell et al.'s sum");
}

/** Return a refusal whose message begins with the name of its rule. */
export function refusal(rule: Rule, why: string): RefusedError {
  return new RefusedError(`${rule}: ${why}`, rule);
}
