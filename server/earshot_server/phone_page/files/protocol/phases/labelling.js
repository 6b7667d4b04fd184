import { checkBetween, checkProbability, checkWhole, demand } from "../checks.js";
import { InvalidParametersError, MalformedMessageError } from "../errors.js";
import { list, map, optional, real, whole } from "../fields.js";
import { matrix, row, rowsOf } from "../matrix.js";
import { voteSum } from "../privacy/mechanisms.js";
import { checkCommon, COMMON, encoderName, labelName, LARGEST_LABELS, releases, } from "./parameters.js";
import { geometryName } from "./places.js";
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
export const proposed = list(whole(0, LARGEST_LABELS - 1), LARGEST_SAMPLES);
export const labelled = {
    geometry: geometryName,
    centroids: matrix,
    labels: list(whole(-1, LARGEST_LABELS - 1), LARGEST_SAMPLES),
    label_names: list(labelName, LARGEST_LABELS),
    label_votes: list(list(whole(), LARGEST_LABELS), LARGEST_SAMPLES),
    agreement: list(whole(), LARGEST_SAMPLES),
    threshold: real(),
    name_p_values: list(real(0, 1), LARGEST_SAMPLES),
    encoder: encoderName,
    privacy: releases,
};
export function labellingParts(given, weight) {
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
export function checkLabelling(given) {
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
            demand(row(samples, at).some((value) => value !== 0), "samples: one is zeros in all dimensions; a sample needs a direction");
        }
    }
    catch (error) {
        if (!(error instanceof MalformedMessageError))
            throw error;
        throw new InvalidParametersError(`samples: ${error.message}`);
    }
    const { threshold } = given;
    const most = given.phones * given.largest_weight;
    demand(threshold > 0 && threshold <= most, `threshold=${threshold}: must be above 0 and at most ${most}, the votes of all phones`);
}
