import { exp, expm1, log1p } from "./elementary.js";
export const LARGEST_LOSS = 500;
const GRID = 2 ** 13;
const LARGEST_GRID = 2 ** 17;
const ROUNDING = 1e-9;
export function pureLosses(releases, delta) {
    const largest = releases.reduce((sum, epsilon) => sum + epsilon, 0);
    if (!releases.length)
        return 0;
    const step = largest / Math.min(GRID * releases.length, LARGEST_GRID);
    let chances = Float64Array.of(1);
    for (const epsilon of releases) {
        const points = Math.max(1, Math.ceil(epsilon / step - ROUNDING));
        const less = exp(-points * step);
        const next = new Float64Array(chances.length + 2 * points);
        chances.forEach((chance, at) => {
            next[at] += (chance * less) / (1 + less);
            next[at + 2 * points] += chance / (1 + less);
        });
        chances = next;
    }
    const reach = (chances.length - 1) / 2;
    const margin = 2 ** ((2 * reach).toString(2).length - 52);
    let [atLeast, ofNeighbour, after] = [0, 0, 0];
    for (let at = reach; at >= 0; at--) {
        const loss = at * step;
        atLeast += chances[reach + at];
        ofNeighbour += chances[reach + at] * exp(-loss);
        const here = Math.max(0, atLeast - exp(loss) * ofNeighbour) + margin;
        if (here > delta) {
            if (at === reach)
                return Infinity;
            return loss + log1p(((here - delta) / (here - after)) * expm1(step));
        }
        after = here;
    }
    return 0;
}
