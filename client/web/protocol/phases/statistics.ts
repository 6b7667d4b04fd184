/** A statistics phase counts the contacts in each environment. */

import { checkMultiplier, checkProbability, checkWhole, demand } from "../checks.ts";
import { day, flag, list, map, nullable, type Of, optional, real, whole } from "../fields.ts";
import { movedByCount, movedWithConfusion, vectorSum } from "../privacy/mechanisms.ts";
import {
  checkCommon,
  COMMON,
  labelName,
  LARGEST_CROWD,
  LARGEST_LABELS,
  releases,
} from "./parameters.ts";
import { agreedPlaces, checkPlaces } from "./places.ts";
import type { Part } from "./plan.ts";

const LARGEST_CONTACTS = 10_000;
const LONGEST_WINDOW = 366 * 86_400_000;

export const statisticsParameters = map({
  ...COMMON,
  contacts: whole(),
  noise: real(),
  since: nullable(day),
  until: nullable(day),
  places: nullable(agreedPlaces),
  confusion: optional(flag, false),
  delta: optional(real(), 1e-6),
});
export type StatisticsParameters = Of<typeof statisticsParameters>;

const LARGEST_COUNT = 1e15;
const count = real(-LARGEST_COUNT, LARGEST_COUNT);
const counts = list(count, LARGEST_LABELS);
const pValue = real(0, 1);
const pValues = list(pValue, LARGEST_LABELS);

/** The private histogram of contacts, and the privacy spent; without p-values nothing was tested. */
export const statistics = {
  label_names: list(labelName, LARGEST_LABELS),
  labelled: counts,
  named: counts,
  unknown: count,
  confusion: optional(list(count, LARGEST_LABELS ** 2), []),
  labelled_p_values: pValues,
  named_p_values: pValues,
  unknown_p_value: pValue,
  deviation: real(0, LARGEST_COUNT),
  contacts: whole(1, LARGEST_CONTACTS),
  phones: whole(0, LARGEST_CROWD),
  since: nullable(day),
  until: nullable(day),
  privacy: releases,
} as const;

/**
 * Return the one part of the phase, its histogram: of labelled, named and unknown contacts, and
 * perhaps of labelled recordings by label and name.
 */
export function statisticsParts(given: StatisticsParameters): Part[] {
  const { length } = given.labels;
  const entries = 2 * length + 1 + (given.confusion ? length ** 2 : 0);
  const moved = given.confusion ? movedWithConfusion : movedByCount;
  const mechanism = vectorSum(given.noise, entries, given.delta, moved(entries, given.contacts));
  return [{ name: "histogram", task: "count-contacts", repetition: 0, shape: [entries], mechanism }];
}

/** Throw `InvalidParametersError` for values that no phase may have. */
export function checkStatistics(given: StatisticsParameters): void {
  checkCommon(given);
  checkWhole("contacts", given.contacts, 1, LARGEST_CONTACTS);
  checkMultiplier("noise", given.noise);
  checkProbability("delta", given.delta);
  const { since, until } = given;
  const length = since && until ? Date.parse(until) - Date.parse(since) : 0;
  demand(
    (since === null && until === null) || (length > 0 && length <= LONGEST_WINDOW),
    `since=${since}, until=${until}: a window of 1 to 366 days is needed, or none`,
  );
  if (given.places !== null) checkPlaces(given.places, given.labels.length);
  demand(given.places !== null || !given.confusion, "confusion=true: needs places");
}

/** Return whether a contact of that day, or of an unknown one, lies in the phase's window. */
export function isInWindow({ since, until }: StatisticsParameters, on: string | null): boolean {
  // Days of four digits a year are in the order of their text.
  return since === null || until === null || (on !== null && since <= on && on < until);
}
