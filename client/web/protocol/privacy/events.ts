/**
 * Events of private releases, from which costs are composed, as in Python's ledger: the kinds that
 * sums by two operators have.
 */

import { map, type Of, oneOf, real, tagged, whole } from "../fields.ts";

/** Differences between neighbours in which costs are counted: a recording, or a whole phone. */
export const UNITS = ["recording", "phone"] as const;
export const unit = oneOf(...UNITS);
export type Unit = (typeof UNITS)[number];

/**
 * An event of one release: a purely private one, or ρ-zCDP, such as discrete Gaussian noise (Bun
 * and Steinke, TCC 2016).
 */
export const privacyEvent = tagged("event", {
  pure: map({ epsilon: real(0), times: whole(1) }),
  zcdp: map({ rho: real(0) }),
});

export type PrivacyEvent = Of<typeof privacyEvent>;

/** Event of a step whose input does not depend on the phone's data. */
export const NOTHING: PrivacyEvent = { event: "pure", epsilon: 0, times: 1 };

/** Return whether an event is `NOTHING`. */
export function isNothing(event: PrivacyEvent): boolean {
  return event.event === "pure" && event.epsilon === 0;
}
