/**
 * Joint costs of releases, computed from their events, as Python's `composition` does where no
 * phone shares noise: two operators' sums are exact, so nothing is added to δ.
 *
 * Rényi differential privacy adds up over releases (Mironov, CSF 2017) and turns into (ε, δ) at the
 * best of a fixed grid of orders. Where all releases are pure, adding up ε or convolving their
 * losses (`losses`) gives less, and is taken.
 */

import { exp, expm1, log, log1p, total } from "./elementary.ts";
import type { PrivacyEvent } from "./events.ts";
import { LARGEST_LOSS, pureLosses } from "./losses.ts";

const LN10 = Math.LN10;
const STEPS = 700;
/** Orders α above 1: 1 + 10^-6 to 1 + 10^10 in even ratios, and 2 to 64. */
const ORDERS: readonly number[] = [
  ...Array.from({ length: STEPS }, (_, at) => 1 + exp(LN10 * (-6 + (16 * at) / (STEPS - 1)))),
  ...Array.from({ length: 63 }, (_, at) => at + 2),
];

/**
 * Return an ε such that all events together are (ε, δ)-differentially private, for a δ from 0 to 1.
 *
 * It is infinite if no bound is known at this δ.
 */
export function composedEpsilon(events: readonly PrivacyEvent[], delta: number): number {
  const pure = events.filter((event) => event.event === "pure");
  const counts = new Map<number, number>();
  for (const { epsilon, times } of pure) counts.set(epsilon, (counts.get(epsilon) ?? 0) + times);
  const added = total([...counts].map(([epsilon, count]) => count * epsilon));
  const isPure = pure.length === events.length;
  if (delta >= 1) return 0;
  if (delta === 0) return isPure ? added : Infinity;
  const renyi = renyiEpsilon(events, counts, delta);
  if (!isPure) return renyi;
  if (added > LARGEST_LOSS) return Math.min(added, renyi);
  const each = [...counts].flatMap(([epsilon, count]) =>
    epsilon ? Array<number>(count).fill(epsilon) : [],
  );
  const losses = pureLosses(each, delta);
  return Math.min(added, losses, renyi);
}

/** Return the best ε of all orders (Canonne, Kamath and Steinke 2020, Proposition 12). */
function renyiEpsilon(
  events: readonly PrivacyEvent[],
  counts: ReadonlyMap<number, number>,
  delta: number,
): number {
  const rho = events.reduce((sum, each) => sum + (each.event === "zcdp" ? each.rho : 0), 0);
  const rare = log(delta);
  let best = Infinity;
  for (const order of ORDERS) {
    let divergence = order * rho;
    for (const [epsilon, count] of counts) divergence += count * randomizedResponse(epsilon, order);
    const found = divergence + log1p(-1 / order) - (rare + log(order)) / (order - 1);
    if (found < best) best = found; // false for NaN, which is no bound
  }
  return Math.max(0, best);
}

/**
 * Return the Rényi divergence of randomized response, the worst of all ε-private releases (Bun and
 * Steinke, TCC 2016, Proposition 3.3 before they simplify it).
 */
function randomizedResponse(epsilon: number, order: number): number {
  if (epsilon === 0) return 0;
  const between = expm1(-(2 * order - 1) * epsilon) * (1 + exp(-epsilon));
  const up = expm1(-2 * order * epsilon) / between;
  const down = (exp(-epsilon) * expm1(-2 * (order - 1) * epsilon)) / between;
  const rise = (order - 1) * epsilon;
  const fall = -order * epsilon;
  // Two ways to write it: one overflows, the other cancels.
  const high = log(up) + rise;
  const moment =
    rise > 1
      ? high + log1p(exp(log(down) + fall - high))
      : log1p(up * expm1(rise) + down * expm1(fall));
  return moment / (order - 1);
}
