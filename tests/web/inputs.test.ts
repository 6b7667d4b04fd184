import assert from "node:assert/strict";
import { test } from "node:test";

import { LabelHierarchy, classesOf, rowNames } from "../../client/web/protocol/environments.ts";
import {
  InvalidInputError,
  InvalidParametersError,
  RefusedError,
} from "../../client/web/protocol/errors.ts";
import { row, type Rows } from "../../client/web/protocol/matrix.ts";
import { agreedHierarchy } from "../../client/web/protocol/phases/parameters.ts";
import { discoveryParameters, startCentroids } from "../../client/web/protocol/phases/discovery.ts";
import { labellingParameters } from "../../client/web/protocol/phases/labelling.ts";
import { type NamedCentroids, namesAt, placesOf } from "../../client/web/protocol/phases/places.ts";
import {
  checkStatistics,
  statisticsParameters,
  statisticsParts,
} from "../../client/web/protocol/phases/statistics.ts";
import { nearest, rint, sphereGrid, squared } from "../../client/web/voting/geometry.ts";
import {
  agreementInput,
  cellsInput,
  contactsInput,
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

test("no recording is rounded to more than its length", () => {
  const random = (at: number): number => Math.sin(at * at + 1); // any numbers, always the same
  const table = Array.from({ length: 200 }, (_, at) => [0, 1, 2].map((c) => random(3 * at + c)));
  const steps = sphereGrid(rows(table, 3));
  let longest = 0;
  for (let at = 0; at < steps.rows; at++) longest = Math.max(longest, squared(row(steps, at)));
  assert.ok(longest <= 2 ** 32 && longest > 0.9999 * 2 ** 32);
});

test("a result names sound by the names that stand clear of the noise", () => {
  const result: NamedCentroids = {
    geometry: "spherical",
    centroids: matrixOf([
      [1, 0],
      [0, 1],
      [-1, 0],
    ]),
    labels: [1, 0, -1],
    label_names: ["street", "nature"],
    name_p_values: [0.05, 0.06, 0],
  };
  const points = rows([
    [1, 0.1],
    [0.1, 1],
    [-1, 0.1],
  ]);
  assert.deepEqual(namesAt(placesOf(result), points), ["nature", null, null]);
  assert.deepEqual(placesOf({ ...result, name_p_values: [] }).names, [null, null, null]);
  const near = placesOf({ ...result, radius: 0.001 });
  assert.deepEqual(namesAt(near, points), [null, null, null]);
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

const contactVectors = await vectors("contacts");

test("what a phone puts into a sum of contacts, and what it marks", () => {
  assert.ok(contactVectors.inputs.length > 10);
  for (const each of contactVectors.inputs) {
    const given = read(statisticsParameters, withoutType(each.parameters));
    const hierarchy = new LabelHierarchy(
      given.labels.map((label, at) => [label, each.choices[at]] as const),
    );
    const choices = each.contacts.map((one: any) => one.choice);
    const classes = classesOf(choices, hierarchy, hierarchy);
    const points = rows(each.contacts.map((one: any) => one.point));
    const found = contactsInput(given, each.contacts, classes, points);
    assert.deepEqual([...found.input], each.input);
    const before = each.contacts.flatMap((one: any, at: number) => (one.counted ? [at] : []));
    assert.deepEqual([...before, ...found.counted].sort((a, b) => a - b), each.counted);
  }
});

test("what a phone derives of a sum of contacts", () => {
  for (const each of contactVectors.sums) {
    const given = read(statisticsParameters, withoutType(each.parameters));
    const [part] = statisticsParts(given);
    assert.deepEqual(part!.shape, each.sum.shape);
    const { recording, phone } = part!.mechanism.distances;
    for (const [ours, theirs] of [
      [recording, each.distances.recording],
      [phone, each.distances.phone],
    ]) {
      assert.ok(Math.abs(ours.l1 / theirs.l1 - 1) < 1e-12);
      assert.ok(Math.abs(ours.l2 / theirs.l2 - 1) < 1e-12);
    }
  }
});

test("all contacts in the window count, each in one entry, once", () => {
  const given = read(statisticsParameters, {
    phones: 500,
    labels: ["a", "b"],
    dropout: 0,
    corrupted: 0,
    contacts: 20,
    noise: 5.5,
    since: "2026-01-01",
    until: "2026-01-08",
  });
  const contact = (choice: string | null, day: string | null, counted = false) => ({
    choice,
    day,
    counted,
  });
  const contacts = [
    contact("a", "2026-01-02"),
    contact("b", "2026-01-01"),
    contact("a", "2025-12-31"), // before the window
    contact("a", "2026-01-07", true), // counted before
    contact("a", null), // of an unknown day
    contact("c", "2026-01-07"), // of no label of the phase
    contact("b", "2026-01-07"),
    contact("a", "2026-01-08"), // after the window
    contact(null, "2026-01-03"), // nobody can tell
  ];
  const classes = contacts.map(({ choice }) => choice);
  const found = contactsInput(given, contacts, classes, null);
  // A contact is a twentieth of a length of 4,094.88 steps.
  assert.deepEqual([...found.input], [205, 409, 0, 0, 409]);
  assert.deepEqual(found.counted, [0, 1, 5, 6, 8]);
  const always = { ...given, since: null, until: null };
  assert.deepEqual(contactsInput(always, [contact("a", null)], ["a"], null).counted, [0]);
  assert.deepEqual([...contactsInput(given, [], [], null).input], Array(5).fill(0));
});

test("a contact without a choice has the name of the nearest place, labelled ones their own", () => {
  const places = {
    encoder: "contrast-3",
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
    contacts: 20,
    noise: 5.5,
    places,
  });
  const points = rows([
    [1, 0.1],
    [1, 0.9],
    [0.1, 1],
    [1, 0.1],
    [1, 0],
  ]);
  const contacts = [null, null, null, "x", "y"].map((choice) => ({
    choice,
    day: null,
    counted: false,
  }));
  const classes = [null, null, null, "b", null];
  const { input } = contactsInput(given, contacts, classes, points);
  // One has label b, one is near place a; two are near none, and nobody knows the last one's label.
  assert.deepEqual([...input], [0, 205, 205, 0, 614]);
  // With a confusion matrix: that of label b lies at place a. Counts are 20 times as short, over √2.
  const asked = { ...given, confusion: true };
  const both = contactsInput(asked, contacts, classes, points);
  assert.deepEqual([...both.input], [0, 145, 145, 0, 434, 0, 0, 2895, 0]);
  const counted = contacts.map((each) => ({ ...each, counted: true }));
  const alone = contactsInput(asked, counted, classes, points);
  assert.deepEqual([...alone.input.subarray(0, 5)], Array(5).fill(0));
  assert.deepEqual([...alone.input.subarray(5)], [0, 0, 2895, 0]);
  assert.deepEqual(alone.counted, []);
  assert.throws(() => checkStatistics({ ...asked, places: null }), InvalidParametersError);
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
    noise: 5.5,
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
