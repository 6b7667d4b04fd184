/**
 * Voters on samples that are to be labelled: an app's model, or the phone's recordings.
 *
 * A ballot leaves the phone whatever a voter answers, so all voters cost the same.
 */

import { InvalidInputError } from "../protocol/errors.ts";
import { row, type Rows } from "../protocol/matrix.ts";
import { product, type Row, unitRows } from "../voting/geometry.ts";

/** Number of a sample's neighbours that vote on it. */
const NEIGHBOURS = 5;
/** Cosine below which a recording is not a neighbour. */
const LEAST_LIKENESS = 0.5;
/**
 * Largest distance of neighbours, as a multiple of the median distance to a recording's nearest.
 */
const REACH = 3;
/** Number of newest recordings from which that median is computed. */
const COMPARED = 500;

/** An app's model. Changes to the phone wait until it has answered. */
export interface Voter {
  /** Possible answers: classes of environments, or their choices. */
  readonly classes: readonly string[];

  /** Name each sample, a row of length one in the encoder's projection; null to abstain. */
  answers(samples: Rows): readonly (string | null)[] | Promise<readonly (string | null)[]>;
}

/** A nearest-neighbour voter: the commonest label of the near recordings; abstains without any. */
export class NearestRecordings implements Voter {
  readonly classes: readonly string[];
  readonly #rows: readonly Row[];
  readonly #labels: readonly (string | null)[];
  readonly #least: number;

  /** Take a phone's recordings, oldest first, and the label of each; null where it has none. */
  constructor(points: Rows, labels: readonly (string | null)[]) {
    this.classes = [...new Set(labels.filter((label) => label !== null))];
    this.#rows = rowsOf(points);
    this.#labels = labels;
    const reach = REACH * medianDistance(this.#rows.slice(-COMPARED));
    this.#least = Math.max(LEAST_LIKENESS, 1 - reach ** 2 / 2);
  }

  answers(samples: Rows): readonly (string | null)[] {
    const [theirs, ours] = [rowsOf(samples), this.#rows];
    return theirs.map((sample) => {
      const near = ours
        .flatMap((own, at) => {
          const label = this.#labels[at] ?? null;
          const cosine = label === null ? 0 : product(sample, own);
          return cosine >= this.#least ? [{ label, cosine }] : [];
        })
        .sort((one, other) => other.cosine - one.cosine) // stable among equals
        .slice(0, NEIGHBOURS);
      const votes = new Map<string | null, number>();
      for (const { label } of near) votes.set(label, (votes.get(label) ?? 0) + 1);
      // Of equally frequent labels, that of the nearest comes first.
      const most = Math.max(...votes.values());
      return [...votes].find(([, count]) => count === most)?.[0] ?? null;
    });
  }
}

/**
 * Return a voter's answers; throws `InvalidInputError` unless there is a valid one for each sample.
 */
export async function askedOf(voter: Voter, samples: Rows): Promise<readonly (string | null)[]> {
  const values = Float32Array.from(unitRows(samples).values);
  const answers = await voter.answers({ ...samples, values });
  const known = new Set<string | null>([null, ...voter.classes]);
  if (answers.length !== samples.rows || !answers.every((answer) => known.has(answer))) {
    throw new InvalidInputError(
      `a voter gave ${answers.length} answers for ${samples.rows} samples: one for each is ` +
        `needed, null where it abstains, and else one of ${voter.classes.join(", ")}`,
    );
  }
  return answers;
}

/** Return the median distance from a row to its nearest other row; 2 for fewer than two rows. */
function medianDistance(rows: readonly Row[]): number {
  if (rows.length < 2) return 2;
  const distances = rows
    .map((own, at) => {
      const others = rows.map((other, place) => (place === at ? -1 : product(own, other)));
      return Math.sqrt(Math.max(0, 2 - 2 * Math.max(...others)));
    })
    .sort((one, other) => one - other);
  const { length } = distances;
  return (distances[(length - 1) >> 1]! + distances[length >> 1]!) / 2;
}

function rowsOf(points: Rows): readonly Row[] {
  const unit = unitRows(points);
  return Array.from({ length: unit.rows }, (_, at) => row(unit, at));
}
