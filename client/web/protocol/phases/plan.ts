/**
 * The plan of a phase: its parts in order, which phone and server derive from its parameters. Every
 * part is a sum by two operators, in three steps, of which a phone answers one.
 */

import { UnexpectedMessageError } from "../errors.ts";
import { type Of, tagged } from "../fields.ts";
import type { Expense } from "../privacy/accounting.ts";
import { expenses, type SumMechanism, unspent } from "../privacy/mechanisms.ts";
import { checkSum, type SumParameters } from "../secure_sum/parameters.ts";
import { checkDiscovery, discoveryParameters, discoveryParts } from "./discovery.ts";
import { checkLabelling, labellingParameters, labellingParts } from "./labelling.ts";
import { leastSurvivors } from "./parameters.ts";
import { checkStatistics, statisticsParameters, statisticsParts } from "./statistics.ts";

/** Parameters of every kind of phase in which this phone takes part, by their `type`. */
export const parameters = tagged("type", {
  discovery: discoveryParameters,
  labelling: labellingParameters,
  statistics: statisticsParameters,
});
export type Parameters = Of<typeof parameters>;

/** A part of a phase: a sum, in which phones send inputs and only the total is revealed. */
export interface Part {
  /** Name of the part, and of its private step in the ledger. */
  readonly name: string;
  /** Type of the task that begins it. */
  readonly task: "sum-cells" | "sum-labels" | "count-contacts" | "label-samples" | "check-labels";
  /** Distinguishes parts that begin with tasks of one type; 0 if there is only one. */
  readonly repetition: number;
  /** Shape of a phone's input. */
  readonly shape: readonly number[];
  readonly mechanism: SumMechanism;
}

/** Return the parts of a phase, in order, for a phone of this weight; by default the largest. */
export function planOf(given: Parameters, weight = weightsOf(given)[0]!): readonly Part[] {
  switch (given.type) {
    case "discovery":
      return discoveryParts(given);
    case "labelling":
      return labellingParts(given, weight);
    case "statistics":
      return statisticsParts(given);
  }
}

/** Return the part that a task begins; throws `UnexpectedMessageError` if there is none. */
export function partOf(
  plan: readonly Part[],
  task: { readonly type: string; readonly repetition?: number },
): Part {
  const part = plan.find(
    (each) => each.task === task.type && each.repetition === (task.repetition ?? 0),
  );
  if (part) return part;
  throw new UnexpectedMessageError(
    `${task.type} in a phase that has no such part: its parts are ` +
      plan.map((each) => each.name).join(", "),
  );
}

/**
 * Return the possible weights of a phone's part in its sums, the largest first.
 *
 * If 0 is among them, a phone with a spent budget adds zeros, which no one can notice.
 */
export function weightsOf(given: Parameters): readonly number[] {
  if (given.type !== "labelling") return [1];
  return Array.from({ length: given.largest_weight + 1 }, (_, at) => given.largest_weight - at);
}

/** Return everything that a phone of this weight releases in a phase, in each unit. */
export function expensesOf(given: Parameters, weight: number): readonly Expense[] {
  const spent = weight ? expenses : unspent;
  return planOf(given, weight).flatMap(({ name, mechanism }) => spent(name, mechanism));
}

/** Throw `InvalidParametersError` for parameters that no phase may have. */
export function checkParameters(given: Parameters): void {
  switch (given.type) {
    case "discovery":
      return checkDiscovery(given);
    case "labelling":
      return checkLabelling(given);
    case "statistics":
      return checkStatistics(given);
  }
}

/**
 * Derive the parameters of a part's sum, the same for phones and operators.
 *
 * Bound and proof are those of the largest weight, whatever this phone's is: no message states a
 * weight. Throws `InvalidParametersError` if the sum exceeds a word, or is too long to be proved.
 */
export function sumOf(given: Parameters, part: Part): SumParameters {
  const { mechanism } = planOf(given).find((each) => each.name === part.name)!;
  const sum = {
    phones: given.phones,
    shape: part.shape,
    bound: BigInt(mechanism.bound),
    noise: mechanism.noise,
    least: Math.max(2, leastSurvivors(given)),
    window: given.step_seconds,
    proof: given.summation === "two-operators" ? mechanism.proof(part.shape) : null,
  };
  checkSum(sum);
  return sum;
}

/** Return encoder and dimensions of a phase's embeddings; null if it uses none. */
export function readsOf(
  given: Parameters,
): { readonly encoder: string; readonly dimensions: number } | null {
  switch (given.type) {
    case "discovery":
      return { encoder: given.encoder, dimensions: given.start.dimensions };
    case "labelling":
      return { encoder: given.encoder, dimensions: given.samples.columns };
    case "statistics":
      return given.places === null
        ? null
        : { encoder: given.places.encoder, dimensions: given.places.centroids.columns };
  }
}
