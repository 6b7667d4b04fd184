import { InvalidInputError } from "../protocol/errors.js";
import { row } from "../protocol/matrix.js";
import { unitRows } from "../voting/geometry.js";
const NEIGHBOURS = 5;
const LEAST_LIKENESS = 0.5;
const REACH = 3;
const COMPARED = 500;
export class NearestRecordings {
    classes;
    #rows;
    #labels;
    #least;
    constructor(points, labels) {
        this.classes = [...new Set(labels.filter((label) => label !== null))];
        this.#rows = rowsOf(points);
        this.#labels = labels;
        const reach = REACH * medianDistance(this.#rows.slice(-COMPARED));
        this.#least = Math.max(LEAST_LIKENESS, 1 - reach ** 2 / 2);
    }
    answers(samples) {
        const [theirs, ours] = [rowsOf(samples), this.#rows];
        return theirs.map((sample) => {
            const near = ours
                .flatMap((own, at) => {
                const label = this.#labels[at] ?? null;
                const cosine = label === null ? 0 : product(sample, own);
                return cosine >= this.#least ? [{ label, cosine }] : [];
            })
                .sort((one, other) => other.cosine - one.cosine)
                .slice(0, NEIGHBOURS);
            const votes = new Map();
            for (const { label } of near)
                votes.set(label, (votes.get(label) ?? 0) + 1);
            const most = Math.max(...votes.values());
            return [...votes].find(([, count]) => count === most)?.[0] ?? null;
        });
    }
}
export async function askedOf(voter, samples) {
    const values = Float32Array.from(unitRows(samples).values);
    const answers = await voter.answers({ ...samples, values });
    const known = new Set([null, ...voter.classes]);
    if (answers.length !== samples.rows || !answers.every((answer) => known.has(answer))) {
        throw new InvalidInputError(`a voter gave ${answers.length} answers for ${samples.rows} samples: one for each is ` +
            `needed, null where it abstains, and else one of ${voter.classes.join(", ")}`);
    }
    return answers;
}
function medianDistance(rows) {
    if (rows.length < 2)
        return 2;
    const distances = rows
        .map((own, at) => {
        const others = rows.map((other, place) => (place === at ? -1 : product(own, other)));
        return Math.sqrt(Math.max(0, 2 - 2 * Math.max(...others)));
    })
        .sort((one, other) => one - other);
    const middle = distances.length >> 1;
    const upper = distances[middle];
    return distances.length % 2 ? upper : (distances[middle - 1] + upper) / 2;
}
function rowsOf(points) {
    const unit = unitRows(points);
    return Array.from({ length: unit.rows }, (_, at) => row(unit, at));
}
function product(one, other) {
    let sum = 0;
    for (let at = 0; at < one.length; at++)
        sum += one[at] * other[at];
    return sum;
}
