/**
 * Private mechanisms of sums by two operators: each has its noise, its sensitivity and its cost.
 *
 * Neighbours differ in one recording of a phone, or in all that the phone contributes, an absent
 * phone counting as zeros.
 */

import { checkProbability, checkWhole, demand } from "../checks.ts";
import type { Proof } from "../prio3/shapes.ts";
import type { Expense } from "./accounting.ts";
import { composedEpsilon } from "./composition.ts";
import { NOTHING, UNITS, type Unit } from "./events.ts";
import { bitLength, eventOf, gaussian, type NoiseOfOperators } from "./sum_noise.ts";

/** Steps per unit of length of a vector that is summed. */
export const GRID = 2 ** 12;
/** Most entries of a sum. */
export const LARGEST_LENGTH = 2 ** 24;

/** A mechanism on a sum to which each of two operators adds the whole noise. */
export interface SumMechanism {
  /** Name of the inputs' sum, without its noise. */
  readonly summed: string;
  /** Noise of one operator on every entry. */
  readonly noise: NoiseOfOperators;
  /** Largest absolute value of an entry of one phone's input. */
  readonly bound: number;
  /** L1 and L2 distance of neighbouring inputs at most, by unit. */
  readonly distances: Readonly<Record<Unit, { readonly l1: number; readonly l2: number }>>;
  /** Value of δ for which costs are stated. */
  readonly delta: number;
  /** Return what a phone proves of its input, which has this shape. */
  readonly proof: (shape: readonly number[]) => Proof;
}

/**
 * Return the mechanism of a sum of vectors of at most `GRID` steps, with discrete Gaussian noise.
 *
 * `multiplier` is the noise's standard deviation over `GRID`, `length` the entries of a vector,
 * `recording` the most that one recording moves it, L2 in steps.
 */
export function vectorSum(
  multiplier: number,
  length: number,
  delta: number,
  recording: number,
): SumMechanism {
  checkWhole("length", length, 1, LARGEST_LENGTH);
  checkProbability("delta", delta);
  const steps = multiplier * GRID;
  const rounded = Math.sqrt(length);
  return {
    summed: "sum of bounded vectors",
    noise: gaussian(steps * steps),
    bound: GRID,
    distances: {
      recording: { l1: rounded * recording, l2: recording },
      phone: { l1: rounded * GRID, l2: GRID },
    },
    delta,
    proof: () => ({ proof: "norm" }),
  };
}

/**
 * Return the most that a recording, which adds to `row` entries, moves a vector of directions, L2
 * in steps. Python's `voting.vectors` proves it.
 */
export function movedByDirection(length: number, row: number): number {
  const rounded = Math.sqrt(length);
  const longest = GRID - rounded / 2;
  return Math.max(GRID, longest + Math.sqrt(row), (2 / Math.sqrt(5)) * longest + rounded);
}

/** Return the most that a recording moves counts that are projected to `radius`, likewise. */
export function movedByCount(length: number, radius: number): number {
  const rounded = Math.sqrt(length);
  return Math.min(GRID, (GRID - rounded / 2) / radius + rounded);
}

/** Return the most that a recording moves such counts with a confusion matrix, likewise. */
export function movedWithConfusion(length: number, radius: number): number {
  const rounded = Math.sqrt(length);
  return (GRID - rounded / 2) * Math.sqrt((1 + 1 / radius ** 2) / 2) + rounded;
}

/**
 * Return the mechanism of votes on `queries` samples, with discrete Gaussian noise.
 *
 * A vote of weight `weight` is one entry; one recording may move it, by L1 `moved` and L2 its root.
 */
export function voteSum(
  queries: number,
  weight: number,
  moved: 1 | 2,
  deviation: number,
  delta: number,
): SumMechanism {
  checkProbability("delta", delta);
  demand(deviation > 0 && Number.isFinite(deviation), `deviation=${deviation}: must be above 0`);
  const many = Math.sqrt(queries);
  return {
    summed: "sum of votes",
    noise: gaussian(deviation * deviation),
    bound: weight,
    distances: {
      recording: { l1: queries * (weight * moved), l2: many * (weight * Math.sqrt(moved)) },
      phone: { l1: queries * weight, l2: many * weight },
    },
    delta,
    // The votes on each sample, a row, add up to one whole vote at most.
    proof: (shape) => ({
      proof: "counts",
      width: bitLength(weight),
      total: weight,
      block: shape.at(-1)!,
    }),
  };
}

/** Return the cost of one private step in each unit, for the ledger. */
export function expenses(step: string, mechanism: SumMechanism): readonly Expense[] {
  return UNITS.map((unit) => {
    const { l1, l2 } = mechanism.distances[unit];
    const event = eventOf(mechanism.noise, l1, l2);
    const epsilon = composedEpsilon([event], mechanism.delta);
    return {
      release: { step, unit, epsilon, delta: mechanism.delta, mechanism: nameOf(mechanism) },
      event,
    };
  });
}

/** Return the cost of one private step to which a phone adds zeros, in each unit. */
export function unspent(step: string, mechanism: SumMechanism): readonly Expense[] {
  return UNITS.map((unit) => ({
    release: { step, unit, epsilon: 0, delta: 0, mechanism: nameOf(mechanism) },
    event: NOTHING,
  }));
}

/** Return the name of a sum, with its noise as operators draw it. */
function nameOf({ summed }: SumMechanism): string {
  return `${summed} with discrete Gaussian noise`;
}
