/**
 * Joint privacy loss of releases that are all purely private, as Python's `losses`.
 *
 * Randomized response dominates any ε-private release (Kairouz, Oh and Viswanath 2015): its loss is
 * ε or −ε. Losses of independent releases add up, so on a grid their distribution is convolved from
 * two points a release. Each ε is rounded up to the grid.
 */

import { exp, expm1, log1p } from "./elementary.ts";

/** Largest joint loss that is convolved; beyond it, a tighter ε would still be meaningless. */
export const LARGEST_LOSS = 500;
const GRID = 2 ** 13;
const LARGEST_GRID = 2 ** 17;
const ROUNDING = 1e-9;

/**
 * Return the smallest ε known to hold at a δ for pure releases that add up to `LARGEST_LOSS` at
 * most; infinite if there is none.
 *
 * `releases` are values of ε, 0 left out.
 */
export function pureLosses(releases: readonly number[], delta: number): number {
  const largest = releases.reduce((sum, epsilon) => sum + epsilon, 0);
  if (!releases.length) return 0;
  // With a smaller step, floats lose their precision.
  const step = Math.max(largest / Math.min(GRID * releases.length, LARGEST_GRID), 2 ** -1022);
  let chances = Float64Array.of(1); // of losses from −reach to reach steps
  for (const epsilon of releases) {
    const points = Math.max(1, Math.ceil(epsilon / step - ROUNDING));
    const less = exp(-points * step);
    const next = new Float64Array(chances.length + 2 * points);
    chances.forEach((chance, at) => {
      next[at]! += (chance * less) / (1 + less);
      next[at + 2 * points]! += chance / (1 + less);
    });
    chances = next;
  }
  const reach = (chances.length - 1) / 2;
  // Python convolves by Fourier transforms of this size, which round by less than the margin.
  const margin = 2 ** ((2 * reach).toString(2).length - 52);
  let [atLeast, ofNeighbour, after] = [0, 0, 0];
  for (let at = reach; at >= 0; at--) {
    const loss = at * step;
    atLeast += chances[reach + at]!;
    ofNeighbour += chances[reach + at]! * exp(-loss);
    const here = Math.max(0, atLeast - exp(loss) * ofNeighbour) + margin;
    if (here > delta) {
      // δ is convex in e^ε, so a chord between points of the grid bounds it.
      if (at === reach) return Infinity;
      return loss + log1p(((here - delta) / (here - after)) * expm1(step));
    }
    after = here;
  }
  return 0;
}
