/**
 * A phone's input to each kind of sum, as pure functions of its recordings.
 *
 * An input is whole numbers, row by row in the shape of its part (docs/protocol.md, section 7).
 */

import { type LabelHierarchy, rowNames } from "../protocol/environments.ts";
import { RefusedError } from "../protocol/errors.ts";
import { type Rows, row, rowsOf } from "../protocol/matrix.ts";
import type { Task } from "../protocol/messages.ts";
import { type DiscoveryParameters, startCentroids } from "../protocol/phases/discovery.ts";
import type { LabellingParameters } from "../protocol/phases/labelling.ts";
import type { Common } from "../protocol/phases/parameters.ts";
import { namesAt, placesNamed } from "../protocol/phases/places.ts";
import { isInWindow, type StatisticsParameters } from "../protocol/phases/statistics.ts";
import { nearest, POINT_GRID, sphereGrid } from "./geometry.ts";
import { bounded, counted, quantized } from "./vectors.ts";

type CellsTask = Extract<Task, { readonly type: "sum-cells" | "sum-labels" }>;

/** A recording, as a histogram counts it. */
export interface Contact {
  /** Label that somebody gave it, whether the phase knows it or not; null if it has none. */
  readonly choice: string | null;
  /** Day in UTC on which it was made; null if it is unknown. */
  readonly day: string | null;
  /** Whether a histogram has counted it. */
  readonly counted: boolean;
}

/**
 * Return a phone's input to a sum of cells: its recordings' directions, added up by cell.
 *
 * `points` are the recordings in the phase's dimensions. Throws `RefusedError` for cells or rows
 * that the phase cannot have, before the first sum costs anything.
 */
export function cellsInput(
  given: DiscoveryParameters,
  task: CellsTask,
  points: Rows,
  agreed: LabelHierarchy,
): Int32Array {
  checkedRows(given, agreed);
  const steps = sphereGrid(points);
  const cells = nearest(steps, cellsOf(given, task), "spherical");
  const { sums, counts } = addedUp(
    steps,
    cells.map((cell, at) => [at, cell]),
    given.most_cells,
    0,
  );
  return quantized(bounded(sums, counts));
}

/**
 * Return a phone's input to the sum of labels: its recordings' directions, added up and counted by
 * label, by choice if choices have rows, and by kind of sound.
 *
 * `choices` and `classes` are each recording's choice and its class in the phase, or null.
 */
export function labelsInput(
  given: DiscoveryParameters,
  task: CellsTask,
  points: Rows,
  choices: readonly (string | null)[],
  classes: readonly (string | null)[],
  agreed: LabelHierarchy,
): Int32Array {
  const rows = checkedRows(given, agreed);
  const steps = sphereGrid(points);
  const kinds = kindsOf(given, task, steps);
  const number = new Map(rowNames(agreed).map((name, at) => [name, at]));
  const members: [number, number][] = [];
  classes.forEach((label, at) => {
    const own = label === null ? undefined : number.get(label);
    if (own === undefined) return;
    const choice = choices[at]!;
    const rowsOfIt = [own];
    if (rows > given.labels.length) {
      // Every recording counts twice; one without a choice of its own counts under its label, and
      // in a count after the rows that has no sum. Otherwise the sensitivity would be larger.
      const isOther = choice !== null && choice !== label && number.has(choice);
      rowsOfIt.push(isOther ? number.get(choice)! : number.size + own);
    }
    for (const each of rowsOfIt) members.push([at, each * given.kinds + kinds[at]!]);
  });
  const behind = rows > given.labels.length ? given.labels.length * given.kinds : 0;
  const { sums, counts } = addedUp(steps, members, rows * given.kinds, behind);
  return quantized(bounded(counted(sums, steps.columns, counts), counts));
}

/**
 * Return a phone's projected counts of its contacts in the window that no histogram has counted,
 * and the indices of these contacts. Mark them as counted in the transaction that enters the
 * histogram into the ledger. Behind the counts is the confusion matrix, if the phase asks for one.
 *
 * `classes` are each recording's class in the phase, or null. Where the phase has places, `points`
 * are the recordings in their dimensions; no other result's places name them.
 */
export function contactsInput(
  given: StatisticsParameters,
  contacts: readonly Contact[],
  classes: readonly (string | null)[],
  points: Rows | null,
): { readonly input: Int32Array; readonly counted: readonly number[] } {
  const { length } = given.labels;
  const labels = labelsOf(given, classes);
  const places = labelsOf(
    given,
    given.places && points ? namesAt(placesNamed(given.places, given.labels), points) : [],
  );
  const counts = new Float64Array(2 * length + 1);
  const held = new Float64Array(length);
  const confusion = new Float64Array(length * length);
  const counted = contacts.flatMap(({ choice, day, counted }, at) => {
    const [label, place = -1] = [labels[at]!, places[at]];
    if (label >= 0) {
      held[label]! += 1;
      if (place >= 0) confusion[label * length + place]! += 1;
    }
    if (counted || !isInWindow(given, day)) return [];
    const [own, first] = choice === null ? [place, length] : [label, 0];
    counts[own < 0 ? 2 * length : first + own]! += 1;
    return [at];
  });
  const projected = bounded(counts, counts, given.contacts);
  // Over √2, two vectors of norm at most 1 are one of norm at most 1.
  const both = [...projected, ...bounded(confusion, held)].map((value) => value / Math.SQRT2);
  return { input: quantized(given.confusion ? Float64Array.from(both) : projected), counted };
}

/** Return a ballot: the weight for a phone's label of each sample, where it has one. */
export function votesInput(
  given: LabellingParameters,
  answers: readonly (string | null)[],
  weight: number,
): Int32Array {
  const input = new Int32Array(given.samples.rows * given.labels.length);
  labelsOf(given, answers).forEach((label, at) => {
    if (label >= 0) input[at * given.labels.length + label] = weight;
  });
  return input;
}

/**
 * Return the weight for each sample that a phone would label as proposed.
 *
 * Throws `RefusedError` unless there is one valid label for each sample.
 */
export function agreementInput(
  given: LabellingParameters,
  answers: readonly (string | null)[],
  proposed: readonly number[],
  weight: number,
): Int32Array {
  const labels = given.labels.length;
  if (proposed.length !== given.samples.rows || proposed.some((label) => label >= labels)) {
    throw new RefusedError(
      `${proposed.length} labels are proposed; one of ${labels} is needed for each of ` +
        `${given.samples.rows} samples`,
    );
  }
  const own = labelsOf(given, answers);
  return Int32Array.from(proposed, (label, at) => (label === own[at] ? weight : 0));
}

/** Return the index of each name in the phase's labels; −1 if there is none. */
function labelsOf(given: Common, names: readonly (string | null)[]): number[] {
  return names.map((name) => (name === null ? -1 : given.labels.indexOf(name)));
}

/** Add up the steps of recordings by row, in units of length, and count them. */
function addedUp(
  steps: Rows,
  members: readonly (readonly [number, number])[],
  rows: number,
  behind: number,
): { readonly sums: Float64Array; readonly counts: readonly number[] } {
  const { columns } = steps;
  const sums = new Float64Array(rows * columns);
  const counts = Array<number>(rows + behind).fill(0);
  for (const [recording, to] of members) {
    counts[to]! += 1;
    if (to >= rows) continue;
    row(steps, recording).forEach((value, at) => {
      sums[to * columns + at]! += value;
    });
  }
  // Sums of whole numbers, so that the order of recordings does not matter.
  return { sums: sums.map((value) => value / POINT_GRID), counts };
}

function kindsOf(given: DiscoveryParameters, task: CellsTask, steps: Rows): readonly number[] {
  if (given.kinds === 1) return Array<number>(steps.rows).fill(0);
  const cells = cellsOf(given, task);
  const kinds = task.type === "sum-labels" ? task.kinds : [];
  if (kinds.length !== cells.rows || kinds.some((kind) => kind >= given.kinds)) {
    throw new RefusedError(
      `${kinds.length} kinds of ${cells.rows} cells: one for each is needed, below ${given.kinds}`,
    );
  }
  return nearest(steps, cells, "spherical").map((cell) => kinds[cell]!);
}

/** Return the number of rows of the sum of labels; refuse any other than the labels require. */
function checkedRows(given: DiscoveryParameters, agreed: LabelHierarchy): number {
  const [labels, all] = [given.labels.length, rowNames(agreed).length];
  if (given.rows === labels || given.rows === all) return given.rows;
  throw new RefusedError(
    `a sum of labels of ${given.rows} rows: ${labels} are accepted, one for each label, or ` +
      `${all}, with those of their choices`,
    "parameters",
  );
}

/** Return the centroids of the cells: the start centroids, or those of the previous sum. */
function cellsOf(given: DiscoveryParameters, task: CellsTask): Rows {
  if (task.parameters !== null) return startCentroids(given);
  if (task.centroids === null) {
    throw new RefusedError("a sum over cells without centroids that is not the first of its phase");
  }
  const cells = rowsOf(task.centroids);
  if (!cells.rows || cells.rows > given.most_cells || cells.columns !== given.start.dimensions) {
    throw new RefusedError(
      `${cells.rows} cells of ${cells.columns} dimensions; 1 to ${given.most_cells} of ` +
        `${given.start.dimensions} are accepted`,
    );
  }
  return cells;
}
