/** A labelling phase: phones vote on public samples, then report agreement with the outcome. */

import { checkBetween, checkProbability, checkWhole, demand } from "../checks.ts";
import { InvalidParametersError, MalformedMessageError } from "../errors.ts";
import { count, list, map, type Of, optional, real, whole } from "../fields.ts";
import { matrix, row, rowsOf } from "../matrix.ts";
import { voteSum } from "../privacy/mechanisms.ts";
import {
  checkCommon,
  COMMON,
  encoderName,
  labelName,
  LARGEST_LABELS,
  releases,
} from "./parameters.ts";
import { geometryName } from "./places.ts";
import type { Part } from "./plan.ts";

const LARGEST_SAMPLES = 4096;
const LARGEST_WEIGHT = 16;
const SMALLEST_NOISE = 1e-6;
const LARGEST_NOISE = 1e9;

export const labellingParameters = map({
  ...COMMON,
  encoder: encoderName,
  samples: matrix,
  votes_noise: real(),
  check_noise: real(),
  threshold: real(),
  largest_weight: optional(whole(), 1),
  delta: optional(real(), 1e-6),
});
export type LabellingParameters = Of<typeof labellingParameters>;

/** An index into the labels for each sample: the one with the most noisy votes. */
export const proposed = list(whole(0, LARGEST_LABELS - 1), LARGEST_SAMPLES);

/** The samples with their answers, and the privacy spent. */
export const labelled = {
  geometry: geometryName,
  centroids: matrix,
  labels: list(whole(-1, LARGEST_LABELS - 1), LARGEST_SAMPLES),
  label_names: list(labelName, LARGEST_LABELS),
  label_votes: list(list(count, LARGEST_LABELS), LARGEST_SAMPLES),
  agreement: list(count, LARGEST_SAMPLES),
  threshold: real(Number.MIN_VALUE, 1.6e9),
  name_p_values: list(real(0, 1), LARGEST_SAMPLES),
  encoder: encoderName,
  privacy: releases,
} as const;

/** Return the votes and the check, for a phone of this weight: the noise is the same for all. */
export function labellingParts(given: LabellingParameters, weight: number): Part[] {
  const { labels, delta } = given;
  const samples = given.samples.rows;
  return [
    {
      name: "votes",
      task: "label-samples",
      repetition: 0,
      shape: [samples, labels.length],
      mechanism: voteSum(samples, weight, 2, given.votes_noise, delta),
    },
    {
      name: "check",
      task: "check-labels",
      repetition: 0,
      shape: [samples, 1],
      mechanism: voteSum(samples, weight, 1, given.check_noise, delta),
    },
  ];
}

/** Throw `InvalidParametersError` for values that no phase may have. */
export function checkLabelling(given: LabellingParameters): void {
  checkCommon(given);
  checkWhole("the number of labels", given.labels.length, 2, LARGEST_LABELS);
  checkWhole("the number of samples", given.samples.rows, 1, LARGEST_SAMPLES);
  checkBetween("votes_noise", given.votes_noise, SMALLEST_NOISE, LARGEST_NOISE);
  checkBetween("check_noise", given.check_noise, SMALLEST_NOISE, LARGEST_NOISE);
  checkWhole("largest_weight", given.largest_weight, 1, LARGEST_WEIGHT);
  checkProbability("delta", given.delta);
  try {
    const samples = rowsOf(given.samples);
    for (let at = 0; at < samples.rows; at++) {
      demand(
        row(samples, at).some((value) => value !== 0),
        "samples: one is zeros, which have no direction",
      );
    }
  } catch (error) {
    if (!(error instanceof MalformedMessageError)) throw error;
    throw new InvalidParametersError(`samples: ${error.message}`);
  }
  const { threshold } = given;
  const most = given.phones * given.largest_weight;
  demand(
    threshold > 0 && threshold <= most,
    `threshold=${threshold}: must be above 0 and at most ${most}, the votes of all phones`,
  );
}
