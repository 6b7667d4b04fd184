import { rowNames } from "../protocol/environments.js";
import { RefusedError } from "../protocol/errors.js";
import { row, rowsOf } from "../protocol/matrix.js";
import { startCentroids } from "../protocol/phases/discovery.js";
import { namesAt, placesNamed } from "../protocol/phases/places.js";
import { isInWindow } from "../protocol/phases/statistics.js";
import { nearest, POINT_GRID, sphereGrid } from "./geometry.js";
import { bounded, counted, quantized } from "./vectors.js";
export function cellsInput(given, task, points, agreed) {
    checkedRows(given, agreed);
    const steps = sphereGrid(points);
    const cells = nearest(steps, cellsOf(given, task), "spherical");
    const { sums, counts } = addedUp(steps, cells.map((cell, at) => [at, cell]), given.most_cells, 0);
    return quantized(bounded(sums, counts));
}
export function labelsInput(given, task, points, choices, classes, agreed) {
    const rows = checkedRows(given, agreed);
    const steps = sphereGrid(points);
    const kinds = kindsOf(given, task, steps);
    const number = new Map(rowNames(agreed).map((name, at) => [name, at]));
    const members = [];
    classes.forEach((label, at) => {
        const own = label === null ? undefined : number.get(label);
        if (own === undefined)
            return;
        const choice = choices[at];
        const rowsOfIt = [own];
        if (rows > given.labels.length) {
            const isOther = choice !== null && choice !== label && number.has(choice);
            rowsOfIt.push(isOther ? number.get(choice) : number.size + own);
        }
        for (const each of rowsOfIt)
            members.push([at, each * given.kinds + kinds[at]]);
    });
    const behind = rows > given.labels.length ? given.labels.length * given.kinds : 0;
    const { sums, counts } = addedUp(steps, members, rows * given.kinds, behind);
    return quantized(bounded(counted(sums, steps.columns, counts), counts));
}
export function contactsInput(given, contacts) {
    const number = new Map(given.labels.map((label, at) => [label, at]));
    const countable = contacts.flatMap(({ environment, day, counted }, at) => {
        const label = environment === null ? undefined : number.get(environment);
        return label === undefined || counted || !isInWindow(given, day) ? [] : [{ at, label }];
    });
    const newest = countable.slice(-given.contacts);
    const input = new Int32Array(given.labels.length);
    for (const { label } of newest)
        input[label] += 1;
    return { input, counted: newest.map(({ at }) => at) };
}
export function environmentsOf(given, points, choices, classes) {
    if (given.places === null || points === null || !points.rows)
        return classes;
    const names = namesAt(placesNamed(given.places, given.labels), points);
    return choices.map((choice, at) => (choice === null ? names[at] : classes[at]));
}
export function votesInput(given, answers, weight) {
    const input = new Int32Array(given.samples.rows * given.labels.length);
    labelsOf(given, answers).forEach((label, at) => {
        if (label >= 0)
            input[at * given.labels.length + label] = weight;
    });
    return input;
}
export function agreementInput(given, answers, proposed, weight) {
    const labels = given.labels.length;
    if (proposed.length !== given.samples.rows || proposed.some((label) => label >= labels)) {
        throw new RefusedError(`${proposed.length} labels are proposed; one of ${labels} is needed for each of ` +
            `${given.samples.rows} samples`);
    }
    const own = labelsOf(given, answers);
    return Int32Array.from(proposed, (label, at) => (label === own[at] ? weight : 0));
}
function labelsOf(given, answers) {
    return answers.map((name) => (name === null ? -1 : given.labels.indexOf(name)));
}
function addedUp(steps, members, rows, behind) {
    const { columns } = steps;
    const sums = new Float64Array(rows * columns);
    const counts = Array(rows + behind).fill(0);
    for (const [recording, to] of members) {
        counts[to] += 1;
        if (to >= rows)
            continue;
        row(steps, recording).forEach((value, at) => {
            sums[to * columns + at] += value;
        });
    }
    return { sums: sums.map((value) => value / POINT_GRID), counts };
}
function kindsOf(given, task, steps) {
    if (given.kinds === 1)
        return Array(steps.rows).fill(0);
    const cells = cellsOf(given, task);
    const kinds = task.type === "sum-labels" ? task.kinds : [];
    if (kinds.length !== cells.rows || kinds.some((kind) => kind >= given.kinds)) {
        throw new RefusedError(`${kinds.length} kinds of ${cells.rows} cells: one for each is needed, below ${given.kinds}`);
    }
    return nearest(steps, cells, "spherical").map((cell) => kinds[cell]);
}
function checkedRows(given, agreed) {
    const [labels, all] = [given.labels.length, rowNames(agreed).length];
    if (given.rows === labels || given.rows === all)
        return given.rows;
    throw new RefusedError(`a sum of labels of ${given.rows} rows: ${labels} are accepted, one for each label, or ` +
        `${all}, with those of their choices`, "parameters");
}
function cellsOf(given, task) {
    if (task.parameters !== null)
        return startCentroids(given);
    if (task.centroids === null) {
        throw new RefusedError("a sum over cells without centroids that is not the first of its phase");
    }
    const cells = rowsOf(task.centroids);
    if (!cells.rows || cells.rows > given.most_cells || cells.columns !== given.start.dimensions) {
        throw new RefusedError(`${cells.rows} cells of ${cells.columns} dimensions; 1 to ${given.most_cells} of ` +
            `${given.start.dimensions} are accepted`);
    }
    return cells;
}
