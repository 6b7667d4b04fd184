/** A discovery phase finds and names environments by sums alone, and protects whole phones. */

import { checkMultiplier, checkProbability, checkWhole, demand } from "../checks.ts";
import {
  bytes,
  flag,
  line,
  list,
  map,
  nullable,
  type Of,
  optional,
  real,
  whole,
} from "../fields.ts";
import { LARGEST_CHOICES, LARGEST_NAME } from "../environments.ts";
import { LARGEST_DIMENSIONS, matrix, type Rows } from "../matrix.ts";
import { movedByDirection, vectorSum } from "../privacy/mechanisms.ts";
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

const MOST_SUMS = 3;
const MOST_CELLS = 1024;
const MOST_KINDS = 16;
const MOST_ROWS = LARGEST_LABELS + LARGEST_CHOICES;
/** Steps of a start centroid's coordinate between 0 and 1. */
const STEPS = 2 ** 15 - 1;
/** Entries of a row in the sum of labels after its dimensions: the count. */
const COUNTS = 1;

export const discoveryParameters = map({
  ...COMMON,
  encoder: encoderName,
  start: map({ dimensions: whole(), count: whole(), rows: bytes(0, 2 ** 26) }),
  most_cells: whole(),
  sums: whole(),
  cells_noise: real(),
  labels_noise: real(),
  rows: whole(),
  kinds: optional(whole(), 1),
  delta: optional(real(), 1e-6),
});
export type DiscoveryParameters = Of<typeof discoveryParameters>;

/** Which sum of cells a task opens, from 1. */
export const repetition = whole(1, MOST_SUMS);
/** The kind of sound of each cell. */
export const kindsOfCells = optional(list(whole(0, MOST_KINDS - 1), MOST_CELLS), []);

const perRow = MOST_ROWS * MOST_KINDS;
const length = real(0, 1e12);

/** Prototypes of labels, the cells in which sound was heard, and the privacy spent. */
export const discovered = {
  geometry: geometryName,
  centroids: matrix,
  labels: list(whole(0, LARGEST_LABELS - 1), perRow),
  choices: list(line(LARGEST_NAME), perRow),
  label_names: list(labelName, LARGEST_LABELS),
  name_p_values: list(real(0, 1), perRow),
  lengths: list(length, perRow),
  cells: matrix,
  moved: list(flag, MOST_CELLS),
  cell_lengths: list(length, MOST_CELLS),
  cell_prototypes: list(whole(-1, perRow - 1), MOST_CELLS),
  radius: nullable(real(0, 2)),
  refused: real(0, 1),
  encoder: encoderName,
  privacy: releases,
} as const;

/** Return the sums of cells, one for each repetition, and the sum of labels. */
export function discoveryParts(given: DiscoveryParameters): Part[] {
  const { most_cells: cells, delta, rows, start } = given;
  const d = start.dimensions;
  // A recording adds to its label's row, and to its choice's where choices have rows.
  const levels = rows > given.labels.length ? 2 : 1;
  const moved = vectorSum(given.cells_noise, cells * d, delta, movedByDirection(cells * d, d));
  const entries = d + COUNTS;
  const length = rows * given.kinds * entries;
  const recording = movedByDirection(length, levels * entries);
  const named = vectorSum(given.labels_noise, length, delta, recording);
  const sums = Array.from({ length: given.sums }, (_, at): Part => ({
    name: `cells ${at + 1}`,
    task: "sum-cells",
    repetition: at + 1,
    shape: [cells, d],
    mechanism: moved,
  }));
  const shape = [rows * given.kinds, entries];
  return [...sums, { name: "labels", task: "sum-labels", repetition: 0, shape, mechanism: named }];
}

/** Throw `InvalidParametersError` for values that no phase may have. */
export function checkDiscovery(given: DiscoveryParameters): void {
  checkCommon(given);
  checkWhole("sums", given.sums, 0, MOST_SUMS);
  checkMultiplier("cells_noise", given.cells_noise);
  checkMultiplier("labels_noise", given.labels_noise);
  checkProbability("delta", given.delta);
  const { dimensions, count, rows } = given.start;
  checkWhole("dimensions of start", dimensions, 1, LARGEST_DIMENSIONS);
  checkWhole("count of start", count, 1, MOST_CELLS);
  const size = 2 * count * dimensions;
  demand(rows.length === size, `start centroids of ${rows.length} bytes, not ${size}`);
  // Rounding moves a coordinate by half a step at most, and a row by √d times that.
  const off = Math.max(...startNorms(given).map((norm) => Math.abs(norm - 1)));
  demand(off <= Math.sqrt(dimensions) / STEPS, "start centroids must have rows of length 1");
  checkWhole("most_cells", given.most_cells, count, MOST_CELLS);
  checkWhole("rows", given.rows, given.labels.length, MOST_ROWS);
  checkWhole("kinds", given.kinds, 1, MOST_KINDS);
}

/** Return the start centroids, float32, rows of length one. */
export function startCentroids(given: DiscoveryParameters): Rows {
  const { dimensions, count } = given.start;
  const norms = startNorms(given);
  const values = Float32Array.from(
    coordinates(given),
    (value, at) => value / norms[Math.floor(at / dimensions)]!,
  );
  return { rows: count, columns: dimensions, values };
}

function startNorms(given: DiscoveryParameters): number[] {
  const { dimensions, count } = given.start;
  const squares = coordinates(given).map((value) => value * value);
  return Array.from({ length: count }, (_, row) =>
    Math.sqrt(
      squares
        .subarray(row * dimensions, (row + 1) * dimensions)
        .reduce((sum, value) => sum + value, 0),
    ),
  );
}

function coordinates({ start: { dimensions, count, rows } }: DiscoveryParameters): Float64Array {
  const view = new DataView(rows.buffer, rows.byteOffset, rows.byteLength);
  return Float64Array.from(
    { length: count * dimensions },
    (_, at) => view.getInt16(2 * at, true) / STEPS,
  );
}
