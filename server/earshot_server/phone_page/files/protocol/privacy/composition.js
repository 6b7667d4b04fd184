import { exp, expm1, log, log1p, logaddexp } from "./elementary.js";
import { LARGEST_LOSS, pureLosses } from "./losses.js";
const LN10 = Math.LN10;
const STEPS = 700;
const ORDERS = [
    ...Array.from({ length: STEPS }, (_, at) => 1 + exp(LN10 * (-6 + (16 * at) / (STEPS - 1)))),
    ...Array.from({ length: 63 }, (_, at) => at + 2),
];
export function composedEpsilon(events, delta) {
    const pure = events.filter((event) => event.event === "pure");
    const added = pure.reduce((sum, { epsilon, times }) => sum + times * epsilon, 0);
    const isPure = pure.length === events.length;
    if (delta >= 1)
        return 0;
    if (delta === 0)
        return isPure ? added : Infinity;
    const renyi = renyiEpsilon(events, delta);
    if (!isPure)
        return renyi;
    if (added > LARGEST_LOSS)
        return Math.min(added, renyi);
    const each = pure.flatMap(({ epsilon, times }) => Array(times).fill(epsilon));
    const losses = pureLosses(each.filter((epsilon) => epsilon > 0), delta);
    return Math.min(added, losses, renyi);
}
function renyiEpsilon(events, delta) {
    const rho = events.reduce((sum, each) => sum + (each.event === "zcdp" ? each.rho : 0), 0);
    const counts = new Map();
    for (const each of events) {
        if (each.event !== "pure")
            continue;
        counts.set(each.epsilon, (counts.get(each.epsilon) ?? 0) + each.times);
    }
    let best = Infinity;
    for (const order of ORDERS) {
        let divergence = order * rho;
        for (const [epsilon, count] of counts)
            divergence += count * randomizedResponse(epsilon, order);
        const found = divergence + log1p(-1 / order) - (log(delta) + log(order)) / (order - 1);
        if (found < best)
            best = found;
    }
    return Math.max(0, best);
}
function randomizedResponse(epsilon, order) {
    if (epsilon === 0)
        return 0;
    const between = expm1(-(2 * order - 1) * epsilon) * (1 + exp(-epsilon));
    const up = expm1(-2 * order * epsilon) / between;
    const down = (exp(-epsilon) * expm1(-2 * (order - 1) * epsilon)) / between;
    const rise = (order - 1) * epsilon;
    const fall = -order * epsilon;
    const moment = rise > 1
        ? logaddexp(log(up) + rise, log(down) + fall)
        : log1p(up * expm1(rise) + down * expm1(fall));
    return moment / (order - 1);
}
