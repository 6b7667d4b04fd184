/** A statistics phase counts the contacts in each environment. */

import { checkWhole, demand } from "../checks.ts";
import { count, day, list, map, nullable, type Of, real, whole } from "../fields.ts";
import { countSum } from "../privacy/mechanisms.ts";
import { checkCommon, COMMON, labelName, LARGEST_LABELS, releases } from "./parameters.ts";
import { agreedPlaces, checkPlaces } from "./places.ts";
import type { Part } from "./plan.ts";

const LARGEST_CONTACTS = 10_000;
/** Smallest ε: noise for less would leave the range of its samplers. */
const SMALLEST_EPSILON = 1e-9;
const LONGEST_WINDOW = 366 * 86_400_000;

export const statisticsParameters = map({
  ...COMMON,
  contacts: whole(),
  epsilon: real(),
  since: nullable(day),
  until: nullable(day),
  places: nullable(agreedPlaces),
});
export type StatisticsParameters = Of<typeof statisticsParameters>;

/** The private histogram of contacts, and the privacy spent; without p-values nothing was tested. */
export const statistics = {
  label_names: list(labelName, LARGEST_LABELS),
  contacts: list(count, LARGEST_LABELS),
  p_values: list(real(0, 1), LARGEST_LABELS),
  since: nullable(day),
  until: nullable(day),
  privacy: releases,
} as const;

/** Return the one part of the phase: its histogram. */
export function statisticsParts({ labels, epsilon, contacts }: StatisticsParameters): Part[] {
  const mechanism = countSum(epsilon, contacts);
  return [
    { name: "histogram", task: "count-contacts", repetition: 0, shape: [labels.length], mechanism },
  ];
}

/** Throw `InvalidParametersError` for values that no phase may have. */
export function checkStatistics(given: StatisticsParameters): void {
  checkCommon(given);
  checkWhole("contacts", given.contacts, 1, LARGEST_CONTACTS);
  const { epsilon, since, until } = given;
  demand(
    epsilon >= SMALLEST_EPSILON && Number.isFinite(epsilon),
    `epsilon=${epsilon}: must be at least ${SMALLEST_EPSILON}`,
  );
  const length = since && until ? Date.parse(until) - Date.parse(since) : 0;
  demand(
    (since === null && until === null) || (length > 0 && length <= LONGEST_WINDOW),
    `since=${since}, until=${until}: a window of 1 to 366 days is needed, or none`,
  );
  if (given.places !== null) checkPlaces(given.places, given.labels.length);
}

/** Return whether a contact of that day, or of an unknown one, lies in the phase's window. */
export function isInWindow({ since, until }: StatisticsParameters, on: string | null): boolean {
  // Days of four digits a year are in the order of their text.
  return since === null || until === null || (on !== null && since <= on && on < until);
}
