import { InvalidInputError } from "../protocol/errors.js";
import { row } from "../protocol/matrix.js";
const SPHERE_GRID = 2 ** 24;
export const POINT_GRID = 2 ** 16;
const LARGEST = 1e150;
const ROUNDING = 1.5 * 2 ** 52;
export function rint(value) {
    return value + ROUNDING - ROUNDING;
}
export function squared(values) {
    let sum = 0;
    for (const value of values)
        sum += value * value;
    return sum;
}
export function unitRows(points) {
    const values = Float64Array.from(points.values);
    if (!values.every((value) => Math.abs(value) <= LARGEST)) {
        throw new InvalidInputError(`points: an entry is not finite, or beyond ±${LARGEST}`);
    }
    const scaled = { ...points, values };
    for (let at = 0; at < points.rows; at++) {
        const own = row(scaled, at);
        let largest = 0;
        for (const value of own)
            largest = Math.max(largest, Math.abs(value));
        if (largest === 0)
            continue;
        for (let column = 0; column < own.length; column++)
            own[column] /= largest;
        const norm = Math.sqrt(squared(own));
        for (let column = 0; column < own.length; column++)
            own[column] /= norm;
    }
    return scaled;
}
export function sphereGrid(points) {
    const exact = unitRows(points);
    const steps = { ...exact, values: exact.values.map((value) => rint(value * POINT_GRID)) };
    for (let at = 0; at < points.rows; at++) {
        const own = row(steps, at);
        if (squared(own) > POINT_GRID ** 2) {
            own.set(row(exact, at).map((value) => Math.trunc(value * POINT_GRID)));
        }
    }
    return steps;
}
export function nearest(points, centroids, geometry) {
    if (!centroids.rows || points.columns !== centroids.columns) {
        throw new InvalidInputError(`points in ${points.columns} dimensions and ${centroids.rows} centroids in ` +
            `${centroids.columns}: at least one is needed, in the same dimensions`);
    }
    const isSpherical = geometry === "spherical";
    const [own, theirs] = [points, centroids].map((rows) => {
        const unit = unitRows(rows);
        return isSpherical ? { ...unit, values: unit.values.map((v) => rint(v * SPHERE_GRID)) } : rows;
    });
    const distance = isSpherical ? opposite : squaredDistance;
    return Array.from({ length: own.rows }, (_, at) => {
        const point = row(own, at);
        let [best, least] = [0, Infinity];
        for (let centroid = 0; centroid < theirs.rows; centroid++) {
            const found = distance(point, row(theirs, centroid));
            if (found < least)
                [best, least] = [centroid, found];
        }
        return best;
    });
}
export function likeness(points, at, others, other) {
    const one = unitRows({ rows: 1, columns: points.columns, values: row(points, at) });
    const two = unitRows({ rows: 1, columns: others.columns, values: row(others, other) });
    return -opposite(one.values, two.values);
}
function opposite(one, other) {
    let sum = 0;
    for (let at = 0; at < one.length; at++)
        sum -= one[at] * other[at];
    return sum;
}
function squaredDistance(one, other) {
    let sum = 0;
    for (let at = 0; at < one.length; at++)
        sum += (one[at] - other[at]) ** 2;
    return sum;
}
