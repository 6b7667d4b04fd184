import { checkBetween, demand } from "../checks.js";
import { InvalidParametersError, RefusedError } from "../errors.js";
import { canonical } from "../canonical.js";
import { addedEpsilon, composedCost, epsilonAt, statedDelta, } from "../privacy/accounting.js";
import { BUDGETS, OVER } from "../privacy/budgets.js";
import { isNothing, UNITS } from "../privacy/events.js";
import { Ledger } from "../privacy/ledger.js";
import { compared } from "../wire.js";
import { honestSurvivors } from "./parameters.js";
import { checkParameters, expensesOf, parameters, readsOf, weightsOf, } from "./plan.js";
const SLACK = 1e-9;
export const DEFAULT_LIMITS = {
    least_phones: 100,
    largest_phones: 10 ** 7,
    largest_epsilon: 3,
    largest_delta: 1e-5,
    largest_yearly_epsilon: 30,
    largest_yearly_delta: 1e-4,
    largest_lifetime_epsilon: 100,
    largest_lifetime_delta: 1e-3,
    largest_phone_epsilon: 2,
    largest_phone_delta: 1e-5,
    largest_yearly_phone_epsilon: 8,
    largest_yearly_phone_delta: 1e-4,
    largest_lifetime_phone_epsilon: 30,
    largest_lifetime_phone_delta: 1e-3,
    largest_dropout: 0.3,
};
export function limitsOf(own = {}) {
    const limits = { ...DEFAULT_LIMITS, any_delta: false, ...own };
    for (const name of Object.keys(DEFAULT_LIMITS)) {
        checkBetween(name, limits[name], 0, Infinity);
    }
    for (const budget of BUDGETS) {
        const isLimited = limits[budget.epsilon] < Infinity;
        demand(!isLimited || limits[budget.delta] < 1, `${budget.delta}=${limits[budget.delta]}: a limit of ε needs a δ below 1`);
    }
    return limits;
}
export function* refusalsOfPhase(limits, given, ledger, today) {
    if (given.summation !== "two-operators") {
        const named = given.summation === "bell" ? "Bell et al.'s sum" : "sums with proofs";
        yield new RefusedError(`protocol: this phone takes no part in ${named} here`, "protocol");
        return;
    }
    let planned;
    try {
        checkParameters(given);
        planned = expensesOf(given, 1);
    }
    catch (error) {
        if (!(error instanceof InvalidParametersError))
            throw error;
        yield new RefusedError(`the phase's parameters are not valid: ${error.message}`, "parameters");
        return;
    }
    const { phones, dropout } = given;
    if (!(phones >= limits.least_phones)) {
        const accepted = `at least ${limits.least_phones} is accepted`;
        yield new RefusedError(`least_phones: phones=${phones}; ${accepted}`, "least_phones");
    }
    yield* atMost(limits, "largest_phones", "phones", phones);
    yield* atMost(limits, "largest_dropout", "dropout", dropout);
    if (honestSurvivors(given) < 1) {
        yield new RefusedError("dropout and corrupted must stay below 1 together", "parameters");
    }
    const paying = weightsOf(given).includes(0) ? new Ledger() : ledger;
    yield* refusalsOfCost(limits, planned, paying, today);
    const delta = statedDelta(planned.filter((each) => each.release.unit === "recording"));
    if (!limits.any_delta && !(delta * phones < 1)) {
        yield new RefusedError(`delta: δ of the phase=${delta} with ${phones} phones; below 1/phones is accepted`, "delta");
    }
}
export function weightFor(limits, given, ledger, today) {
    const weights = weightsOf(given);
    const fits = (weight) => refusalsOfCost(limits, expensesOf(given, weight), ledger, today).next().done === true;
    return weights.slice(0, -1).find(fits) ?? weights.at(-1);
}
export function* refusalsOfCost(limits, expenses, ledger, today, phase) {
    for (const unit of UNITS) {
        const added = expenses.filter((each) => each.release.unit === unit && !isNothing(each.event));
        if (!added.length)
            continue;
        const before = {
            phase: phase === undefined ? [] : ledger.expensesOf(unit, { phase }),
            year: ledger.expensesOf(unit, { today }),
            life: ledger.expensesOf(unit),
        };
        for (const budget of BUDGETS.filter((each) => each.unit === unit)) {
            const refused = [...refusalsOfBudget(limits, budget, before[budget.span], added)];
            yield* refused;
            if (refused.length)
                break;
        }
    }
}
export function standing(limits, ledger, today) {
    return BUDGETS.filter((budget) => budget.span !== "phase").map((budget) => {
        const { span, unit } = budget;
        const own = limits[budget.delta];
        const delta = own >= 1 ? DEFAULT_LIMITS[budget.delta] : own;
        const spent = ledger.expensesOf(unit, span === "year" ? { today } : {});
        return {
            span,
            unit,
            epsilon: epsilonAt(delta, spent),
            largestEpsilon: limits[budget.epsilon],
            delta,
        };
    });
}
export function refusalOfChange(agreed, proposed) {
    const isSame = compared(canonical(parameters, agreed), canonical(parameters, proposed)) === 0;
    return isSame
        ? null
        : new RefusedError("changed: parameters stay as this phone agreed to them", "changed");
}
export function* refusalsOfEncoder(given, encoder, dimensions) {
    const reads = readsOf(given);
    if (reads && reads.encoder !== encoder) {
        yield new RefusedError(`encoder: the phase is about embeddings of '${reads.encoder}'; this phone's are of ` +
            `'${encoder}'`, "encoder");
    }
    if (reads && reads.dimensions > dimensions) {
        yield new RefusedError(`dimensions=${reads.dimensions}: an embedding has ${dimensions}`, "dimensions");
    }
}
function* refusalsOfBudget(limits, budget, before, added) {
    const [epsilon, delta] = [limits[budget.epsilon], limits[budget.delta]];
    if (delta >= 1)
        return;
    const together = [...before, ...added];
    const stated = statedDelta(together);
    const isBoundless = added.some((each) => each.release.epsilon === Infinity);
    const reached = isBoundless ? Infinity : epsilonAt(delta, together);
    const fits = isAtMost(reached, epsilon);
    if (fits && stated <= delta)
        return;
    const spent = before.length ? `, with ${epsilonAt(delta, before)} already spent` : "";
    const over = `${OVER[budget.span]} per ${budget.unit}`;
    if (stated > delta && (budget.span === "phase" || !fits)) {
        yield* atMost(limits, budget.epsilon, `ε ${over}${spent}`, addedEpsilon(together));
        yield* atMost(limits, budget.delta, `δ ${over}`, stated);
    }
    if (stated <= delta && !fits) {
        const isWhole = budget.span === "phase" && !before.length;
        const told = isWhole ? Math.max(reached, composedCost(added).epsilon) : reached;
        yield* atMost(limits, budget.epsilon, `ε ${over}${spent}`, told);
    }
}
function* atMost(limits, rule, what, value) {
    if (isAtMost(value, limits[rule]))
        return;
    yield new RefusedError(`${rule}: ${what}=${value}; at most ${limits[rule]} is accepted`, rule);
}
function isAtMost(value, limit) {
    return value <= limit || Math.abs(value - limit) <= SLACK * Math.max(value, limit);
}
