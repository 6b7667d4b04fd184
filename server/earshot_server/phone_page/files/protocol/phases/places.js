import { checkWhole, demand } from "../checks.js";
import { MalformedMessageError, InvalidParametersError } from "../errors.js";
import { list, map, nullable, oneOf, real, whole } from "../fields.js";
import { matrix, rowsOf } from "../matrix.js";
import { likeness, nearest } from "../../voting/geometry.js";
import { encoderName } from "./parameters.js";
const MOST_PLACES = 4096;
const UNNAMED = -1;
export const LEVEL = 0.05;
export const geometryName = oneOf("euclidean", "spherical");
export const agreedPlaces = map({
    encoder: encoderName,
    geometry: geometryName,
    centroids: matrix,
    labels: list(whole(UNNAMED), MOST_PLACES),
    radius: nullable(real(0, 2)),
});
export function placesNamed(agreed, labels) {
    return {
        points: rowsOf(agreed.centroids),
        names: agreed.labels.map((label) => labels[label] ?? null),
        geometry: agreed.geometry,
        radius: agreed.radius,
    };
}
export function placesOf(result) {
    const { labels, name_p_values: chances } = result;
    const isTested = chances.length === labels.length;
    return {
        points: rowsOf(result.centroids),
        names: labels.map((label, at) => isTested && chances[at] <= LEVEL ? (result.label_names[label] ?? null) : null),
        geometry: result.geometry,
        radius: result.radius ?? null,
    };
}
export function namesAt(places, points) {
    if (!places.points.rows)
        return Array(points.rows).fill(null);
    return nearest(points, places.points, places.geometry).map((owner, at) => places.radius === null || 1 - likeness(points, at, places.points, owner) <= places.radius
        ? places.names[owner]
        : null);
}
export function checkPlaces(agreed, labels) {
    try {
        const { rows } = rowsOf(agreed.centroids);
        checkWhole("the number of places", rows, 1, MOST_PLACES);
        demand(agreed.labels.length === rows && agreed.labels.every((label) => label < labels), `places: one of ${labels} labels is needed for each of ${rows} places, or ${UNNAMED}`);
    }
    catch (error) {
        if (!(error instanceof MalformedMessageError))
            throw error;
        throw new InvalidParametersError(`places: ${error.message}`);
    }
}
