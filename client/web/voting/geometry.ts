/**
 * Distances between points, and the centroid that is nearest to a point.
 *
 * The sensitivity of sums requires that a recording counts for exactly one centroid, which must
 * depend on that recording and the centroids alone, to the last bit (Python's `geometry`).
 */

import { InvalidInputError } from "../protocol/errors.ts";
import { row, type Rows } from "../protocol/matrix.ts";

/** Entries of a row. */
export type Row = Rows["values"];
export type Geometry = "euclidean" | "spherical";

/** Steps per unit length: finer than float32, with inner products that stay below 2^53. */
const SPHERE_GRID = 2 ** 24;
/** Steps per unit of a recording that is added up: sums of 2^30 recordings still fit doubles. */
export const POINT_GRID = 2 ** 16;
/** Largest magnitude of an entry: its square is still a double. */
const LARGEST = 1e150;
// Adding it to a double below 2^51 rounds to a whole number, ties to even.
const ROUNDING = 1.5 * 2 ** 52;

/** Round a number below 2^51 to the nearest whole one, ties to even. */
export function rint(value: number): number {
  return value + ROUNDING - ROUNDING;
}

/** Return the sum of squares of numbers. */
export function squared(values: Iterable<number>): number {
  let sum = 0;
  for (const value of values) sum += value * value;
  return sum;
}

/**
 * Scale rows to length one; a row of zeros stays unchanged.
 *
 * Throws `InvalidInputError` for an entry that is not finite, or beyond ±10^150.
 */
export function unitRows(points: Rows): Rows {
  const values = Float64Array.from(points.values);
  if (!values.every((value) => Math.abs(value) <= LARGEST)) {
    throw new InvalidInputError(`points: an entry is not finite, or beyond ±${LARGEST}`);
  }
  const scaled = { ...points, values };
  for (let at = 0; at < points.rows; at++) {
    const own = row(scaled, at);
    const divide = (by: number): void => own.set(own.map((value) => value / by));
    let largest = 0;
    for (const value of own) largest = Math.max(largest, Math.abs(value));
    if (largest === 0) continue;
    divide(largest); // which keeps the squares from over- or underflowing
    divide(Math.sqrt(squared(own)));
  }
  return scaled;
}

/** Return rows of length one as whole numbers of `POINT_GRID` steps, no longer than those. */
export function sphereGrid(points: Rows): Rows {
  const exact = unitRows(points);
  const steps = { ...exact, values: exact.values.map((value) => rint(value * POINT_GRID)) };
  for (let at = 0; at < points.rows; at++) {
    const own = row(steps, at);
    // Sums of squares of whole numbers below 2^53 are exact, so this comparison is, too.
    if (squared(own) > POINT_GRID ** 2) {
      own.set(row(exact, at).map((value) => Math.trunc(value * POINT_GRID)));
    }
  }
  return steps;
}

/**
 * Return the nearest centroid of every point; of equally near ones the first.
 *
 * Throws `InvalidInputError` where there is no centroid, columns differ, or an entry is not finite.
 */
export function nearest(points: Rows, centroids: Rows, geometry: Geometry): number[] {
  if (!centroids.rows || points.columns !== centroids.columns) {
    throw new InvalidInputError(
      `points in ${points.columns} dimensions and ${centroids.rows} centroids in ` +
        `${centroids.columns}: at least one is needed, in the same dimensions`,
    );
  }
  const isSpherical = geometry === "spherical";
  const [own, theirs] = [points, centroids].map((rows) => {
    const unit = unitRows(rows); // which also checks them
    return isSpherical ? { ...unit, values: unit.values.map((v) => rint(v * SPHERE_GRID)) } : rows;
  }) as [Rows, Rows];
  const distance = (one: Row, other: Row): number =>
    isSpherical ? -product(one, other) : squaredDistance(one, other);
  return Array.from({ length: own.rows }, (_, at) => {
    const point = row(own, at);
    let [best, least] = [0, Infinity];
    for (let centroid = 0; centroid < theirs.rows; centroid++) {
      const found = distance(point, row(theirs, centroid));
      if (found < least) [best, least] = [centroid, found];
    }
    return best;
  });
}

/** Return the cosine of the angle between two rows. */
export function likeness(points: Rows, at: number, others: Rows, other: number): number {
  const one = unitRows({ rows: 1, columns: points.columns, values: row(points, at) });
  const two = unitRows({ rows: 1, columns: others.columns, values: row(others, other) });
  return product(one.values, two.values);
}

/** Return the inner product of two rows. */
export function product(one: Row, other: Row): number {
  let sum = 0;
  for (let at = 0; at < one.length; at++) sum += one[at]! * other[at]!;
  return sum;
}

function squaredDistance(one: Row, other: Row): number {
  let sum = 0;
  for (let at = 0; at < one.length; at++) sum += (one[at]! - other[at]!) ** 2;
  return sum;
}
