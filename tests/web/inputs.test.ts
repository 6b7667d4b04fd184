import assert from "node:assert/strict";
import { test } from "node:test";

import { LabelHierarchy, classesOf, rowNames } from "../../client/web/protocol/environments.ts";
import {
  InvalidInputError,
  InvalidParametersError,
  RefusedError,
} from "../../client/web/protocol/errors.ts";
import type { Rows } from "../../client/web/protocol/matrix.ts";
import { agreedHierarchy } from "../../client/web/protocol/phases/parameters.ts";
import { discoveryParameters, startCentroids } from "../../client/web/protocol/phases/discovery.ts";
import { labellingParameters } from "../../client/web/protocol/phases/labelling.ts";
import { statisticsParameters } from "../../client/web/protocol/phases/statistics.ts";
import { nearest, rint } from "../../client/web/voting/geometry.ts";
import {
  agreementInput,
  cellsInput,
  contactsInput,
  environmentsOf,
  labelsInput,
  votesInput,
} from "../../client/web/voting/inputs.ts";
import { quantized, unitSteps } from "../../client/web/voting/vectors.ts";
import { hex } from "../../client/web/protocol/wire.ts";
import { read, vectors } from "./vectors.ts";

function rows(table: readonly (readonly number[])[], columns = 2): Rows {
  return { rows: table.length, columns, values: Float32Array.from(table.flat()) };
}

function matrixOf(table: readonly (readonly number[])[]): any {
  const { values, columns } = rows(table, table[0]!.length);
  return { rows: table.length, columns, data: new Uint8Array(values.buffer) };
}

/** A table of rows, as the vectors have it. */
function tableOf(input: Int32Array, columns: number): number[][] {
  return Array.from({ length: input.length / columns }, (_, at) => [
    ...input.subarray(at * columns, (at + 1) * columns),
  ]);
}

const cells = await vectors("cells");
const { parameters: anyDiscovery } = cells.sums[0];

function phase(case_: any, own: object): any {
  const { start } = case_;
  return {
    ...read(discoveryParameters, withoutType(anyDiscovery)),
    ...(start
      ? { start: read(discoveryParameters, { ...withoutType(anyDiscovery), start }).start }
      : {}),
    ...own,
  };
}

function withoutType({ type: _, ...rest }: any): any {
  return rest;
}

test("what a phone puts into a sum of cells", () => {
  assert.ok(cells.inputs.length > 8);
  for (const each of cells.inputs) {
    const given = phase(each, { most_cells: each.most_cells });
    const agreed = LabelHierarchy.flat(given.labels);
    const task: any = {
      type: "sum-cells",
      parameters: each.centroids ? null : given,
      centroids: each.centroids ? matrixOf(each.centroids) : null,
    };
    const found = cellsInput(given, task, rows(each.points), agreed);
    assert.deepEqual(tableOf(found, 2), each.sum_cells);
  }
});

test("what a phone puts into the sum of labels", () => {
  assert.ok(cells.label_inputs.length > 20);
  for (const each of cells.label_inputs) {
    const given = phase(each, { labels: each.labels, rows: each.rows, kinds: each.kinds });
    const agreed = each.choices.length
      ? new LabelHierarchy(
          each.labels.map((label: string, at: number) => [label, each.choices[at]]),
        )
      : LabelHierarchy.flat(each.labels);
    const task: any = {
      type: "sum-labels",
      parameters: each.centroids ? null : given,
      centroids: each.centroids ? matrixOf(each.centroids) : null,
      kinds: each.kinds_of_cells,
    };
    const classes = classesOf(each.names, agreed, agreed);
    const found = labelsInput(given, task, rows(each.points), each.names, classes, agreed);
    assert.deepEqual(tableOf(found, 3), each.sum_labels);
  }
});

test("cells and rows that a phase cannot have are refused", () => {
  const given = phase(cells.inputs[0], { labels: ["a", "b"], rows: 2, kinds: 1, most_cells: 4 });
  const agreed = LabelHierarchy.flat(["a", "b"]);
  const task: any = { type: "sum-cells", parameters: null, centroids: matrixOf([[1, 0]]) };
  const points = rows([[1, 0]]);
  assert.equal(cellsInput(given, task, points, agreed).length, 8);
  for (const wrong of [
    { centroids: null },
    { centroids: matrixOf([[1, 0, 0]]) },
    {
      centroids: matrixOf([
        [1, 0],
        [0, 1],
        [1, 1],
        [1, 2],
        [2, 1],
      ]),
    },
  ]) {
    assert.throws(() => cellsInput(given, { ...task, ...wrong }, points, agreed), RefusedError);
  }
  assert.throws(() => cellsInput({ ...given, rows: 3 }, task, points, agreed), RefusedError);
  const split = { ...given, kinds: 2 };
  const named: any = { ...task, type: "sum-labels", kinds: [1] };
  assert.equal(labelsInput(split, named, points, ["a"], ["a"], agreed).length, 12);
  for (const kinds of [[], [0, 1], [2]]) {
    assert.throws(
      () => labelsInput(split, { ...named, kinds }, points, ["a"], ["a"], agreed),
      RefusedError,
    );
  }
});

test("vectors are rounded as the vectors are, and none is too long", () => {
  for (const { vector, unit_steps, steps } of cells.rounded) {
    const flat = Float64Array.from(vector.flat());
    assert.equal(unitSteps(flat.length), unit_steps);
    assert.deepEqual([...quantized(flat)], steps.flat());
  }
  assert.throws(() => quantized(Float64Array.from(cells.too_long.flat())), InvalidInputError);
  assert.throws(() => quantized(Float64Array.of(NaN)), InvalidInputError);
  assert.throws(() => quantized(Float64Array.of(Infinity)), InvalidInputError);
  assert.deepEqual([0.5, 1.5, 2.5, -0.5, -1.5, 2.4999, 3].map(rint), [0, 2, 2, 0, -2, 2, 3]);
});

test("the nearest centroid is the first of equally near ones", async () => {
  const { points, counts } = await vectors("ballots");
  for (const { geometry, centroids, nearest: wanted } of counts) {
    assert.deepEqual(nearest(rows(points), rows(centroids), geometry), wanted);
  }
  assert.throws(() => nearest(rows(points), rows([]), "spherical"), InvalidInputError);
  assert.throws(() => nearest(rows([[NaN, 0]]), rows([[1, 0]]), "euclidean"), InvalidInputError);
});

test("votes and agreement by weight", async () => {
  const { answers, ballots, proposed, agreement_ballots, sums } = await vectors("labelling");
  const given = read(labellingParameters, withoutType(sums[0].parameters));
  const names = answers.map((label: number) => given.labels[label] ?? null);
  for (const weight of [0, 1, 3]) {
    const cast = votesInput(given, names, weight);
    assert.deepEqual(tableOf(cast, given.labels.length), ballots[weight]);
    const agreed = agreementInput(given, names, proposed, weight);
    assert.deepEqual(tableOf(agreed, 1), agreement_ballots[weight]);
  }
  assert.deepEqual([...votesInput(given, ["no label", null, null], 1)], Array(9).fill(0));
  // An answer that is no label agrees with no proposal.
  assert.deepEqual([...agreementInput(given, ["no label", null, null], [0, 0, 0], 1)], [0, 0, 0]);
  for (const wrong of [
    [0, 1],
    [0, 1, 3],
  ]) {
    assert.throws(() => agreementInput(given, names, wrong, 1), RefusedError);
  }
});

test("a histogram counts the newest in the window, once", () => {
  const given = read(statisticsParameters, {
    phones: 500,
    labels: ["a", "b"],
    dropout: 0,
    corrupted: 0,
    contacts: 2,
    epsilon: 1,
    since: "2026-01-01",
    until: "2026-01-08",
  });
  const contact = (environment: string | null, day: string | null, counted = false) => ({
    environment,
    day,
    counted,
  });
  const found = contactsInput(given, [
    contact("a", "2026-01-02"), // displaced by two newer ones
    contact("b", "2026-01-01"),
    contact("a", "2025-12-31"), // before the window
    contact("a", "2026-01-07", true), // counted before
    contact("a", null), // of an unknown day
    contact("c", "2026-01-07"), // of no label
    contact("b", "2026-01-07"),
    contact("a", "2026-01-08"), // after the window
    contact(null, "2026-01-03"), // nobody can tell
  ]);
  assert.deepEqual([...found.input], [0, 2]);
  assert.deepEqual(found.counted, [1, 6]);
  const always = { ...given, since: null, until: null };
  assert.deepEqual(contactsInput(always, [contact("a", null)]).counted, [0]);
});

test("a contact without a choice has the name of the nearest place, within its radius", () => {
  const places = {
    encoder: "contrast-2",
    geometry: "spherical",
    labels: [0, -1],
    centroids: { rows: 2, columns: 2, data: "AACAPwAAAAAAAAAAAACAPw==" },
    radius: 0.25,
  };
  const given = read(statisticsParameters, {
    phones: 500,
    labels: ["a", "b"],
    dropout: 0,
    corrupted: 0,
    contacts: 2,
    epsilon: 1,
    places,
  });
  const points = rows([
    [1, 0.1],
    [1, 0.9],
    [0.1, 1],
    [1, 0.1],
    [1, 0],
  ]);
  assert.deepEqual(
    environmentsOf(given, points, [null, null, null, "x", "y"], [null, null, null, "b", null]),
    ["a", null, null, "b", null],
  );
});

test("a choice counts as the class that it stands for, here or in the phone's own polls", () => {
  const agreed = new LabelHierarchy([
    ["street", ["siren"]],
    ["nature", []],
  ]);
  const usual = new LabelHierarchy([
    ["nature", ["birds"]],
    ["home", ["kitchen"]],
  ]);
  assert.deepEqual(
    classesOf(["siren", "street", "birds", "kitchen", "unknown", null], agreed, usual),
    ["street", "street", "nature", null, null, null],
  );
  assert.deepEqual(
    rowNames(
      new LabelHierarchy([
        ["a", ["a", "b"]],
        ["c", ["d"]],
      ]),
    ),
    ["a", "c", "b", "d"],
  );
  for (const wrong of [
    [],
    [
      ["a", []],
      ["a", []],
    ],
    [
      ["a", ["b"]],
      ["c", ["b"]],
    ],
    [
      ["a", ["c"]],
      ["c", []],
    ],
    [["", []]],
    [[" a", []]],
    [["a\n", []]],
    [["a".repeat(65), []]],
    [["a\u200b", []]],
  ] as any[]) {
    assert.throws(() => new LabelHierarchy(wrong), InvalidInputError);
  }
});

test("choices are those of the digest that was agreed on", async () => {
  const given = read(statisticsParameters, {
    phones: 500,
    labels: ["a", "b"],
    dropout: 0,
    corrupted: 0,
    contacts: 2,
    epsilon: 1,
  });
  assert.deepEqual((await agreedHierarchy(given, [])).choices, ["a", "b"]);
  const choices = [["c", "d"], []];
  const hierarchy = await new LabelHierarchy([
    ["a", ["c", "d"]],
    ["b", []],
  ]).digest();
  assert.equal(hex(hierarchy).length, 64);
  const finer = { ...given, hierarchy };
  assert.deepEqual((await agreedHierarchy(finer, choices)).classes, ["a", "b"]);
  for (const [stated, wrong] of [
    [given, choices],
    [finer, []],
    [finer, [["d", "c"], []]],
    [finer, [["c", "d"]]],
    [finer, [["c", "d"], ["c"]]],
  ] as const) {
    await assert.rejects(agreedHierarchy(stated, wrong), InvalidParametersError);
  }
  assert.equal(startCentroids(phase(cells.inputs[0], {})).columns, 2);
});
