/** Places that name the sound nearest to them: from results, or agreed on in a phase. */

import { checkWhole, demand } from "../checks.ts";
import { MalformedMessageError, InvalidParametersError } from "../errors.ts";
import { list, map, nullable, type Of, oneOf, real, whole } from "../fields.ts";
import { type Matrix, matrix, type Rows, rowsOf } from "../matrix.ts";
import { type Geometry, likeness, nearest } from "../../voting/geometry.ts";
import { encoderName } from "./parameters.ts";

const MOST_PLACES = 4096;
const UNNAMED = -1;
/** Largest p-value of a name that stands clear of the noise. */
export const LEVEL = 0.05;

export const geometryName = oneOf("euclidean", "spherical");

/** Places by which all phones of a phase name sound: a part of its parameters. */
export const agreedPlaces = map({
  encoder: encoderName,
  geometry: geometryName,
  centroids: matrix,
  labels: list(whole(UNNAMED), MOST_PLACES),
  radius: nullable(real(0, 2)),
});
export type AgreedPlaces = Of<typeof agreedPlaces>;

/** Places of which the nearest names a sound, if it is near enough. */
export interface Places {
  readonly points: Rows;
  /** Name of each place; null where it has none. */
  readonly names: readonly (string | null)[];
  readonly geometry: Geometry;
  /** Largest distance at which a place names a sound, 1 − cosine; null for any. */
  readonly radius: number | null;
}

/** Part of every result that names sound. */
export interface NamedCentroids {
  readonly geometry: Geometry;
  readonly centroids: Matrix;
  readonly labels: readonly number[];
  readonly label_names: readonly string[];
  readonly name_p_values: readonly number[];
  readonly radius?: number | null;
}

/** Return the places of a phase, named by its labels. */
export function placesNamed(agreed: AgreedPlaces, labels: readonly string[]): Places {
  return {
    points: rowsOf(agreed.centroids),
    names: agreed.labels.map((label) => labels[label] ?? null),
    geometry: agreed.geometry,
    radius: agreed.radius,
  };
}

/** Return the places of a result; a name that may be noise is left out. */
export function placesOf(result: NamedCentroids): Places {
  const { labels, name_p_values: chances } = result;
  const isTested = chances.length === labels.length;
  return {
    points: rowsOf(result.centroids),
    names: labels.map((label, at) =>
      isTested && chances[at]! <= LEVEL ? (result.label_names[label] ?? null) : null,
    ),
    geometry: result.geometry,
    radius: result.radius ?? null,
  };
}

/** Return the name of the place that is nearest to each point; null where it is unknown. */
export function namesAt(places: Places, points: Rows): readonly (string | null)[] {
  if (!places.points.rows) return Array<null>(points.rows).fill(null);
  return nearest(points, places.points, places.geometry).map((owner, at) =>
    places.radius === null || 1 - likeness(points, at, places.points, owner) <= places.radius
      ? places.names[owner]!
      : null,
  );
}

/** Throw `InvalidParametersError` for places that cannot name sound. */
export function checkPlaces(agreed: AgreedPlaces, labels: number): void {
  try {
    const { rows } = rowsOf(agreed.centroids);
    checkWhole("the number of places", rows, 1, MOST_PLACES);
    demand(
      agreed.labels.length === rows && agreed.labels.every((label) => label < labels),
      `places: one of ${labels} labels is needed for each of ${rows} places, or ${UNNAMED}`,
    );
  } catch (error) {
    if (!(error instanceof MalformedMessageError)) throw error;
    throw new InvalidParametersError(`places: ${error.message}`);
  }
}
