/**
 * Limits of a phone, default or an app's own, and the phases that it refuses, as Python's
 * `acceptance` does for sums by two operators.
 *
 * The server proposes, the phone decides. Refusals come in a fixed order; a phone reports the
 * first.
 */

import { checkBetween, demand } from "../checks.ts";
import { InvalidParametersError, RefusedError } from "../errors.ts";
import { canonical } from "../canonical.ts";
import {
  addedEpsilon,
  composedCost,
  epsilonAt,
  type Expense,
  statedDelta,
} from "../privacy/accounting.ts";
import { BUDGETS, type LedgerBudget, OVER, type Standing } from "../privacy/budgets.ts";
import { isNothing, UNITS } from "../privacy/events.ts";
import { Ledger } from "../privacy/ledger.ts";
import { refusal, refusalOfBell, type Rule } from "../rules.ts";
import { type Bytes, compared } from "../wire.ts";
import { honestSurvivors } from "./parameters.ts";
import {
  checkParameters,
  expensesOf,
  type Parameters,
  parameters,
  readsOf,
  weightsOf,
} from "./plan.ts";

/** Relative room for rounding: thirty times 0.1 is at most 3. */
const SLACK = 1e-9;

/** Default limits, by the names of their rules; Python's `Limits` documents each. */
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

/** Limits of a phone, by the names of their rules. */
export type Limits = Readonly<Record<keyof typeof DEFAULT_LIMITS, number>> & {
  /** Whether a phase may have a δ of 1/phones or more, with which it may expose a phone. */
  readonly any_delta: boolean;
};

/**
 * Return the default limits, with an app's own over them.
 *
 * Throws `InvalidParametersError` for a limit that is unknown, negative or not a number, and for a
 * limit of ε whose δ is 1 or more, at which every ε is 0.
 */
export function limitsOf(own: Partial<Limits> = {}): Limits {
  const { any_delta, ...limits } = { ...DEFAULT_LIMITS, any_delta: false, ...own };
  for (const [name, limit] of Object.entries(limits)) {
    demand(name in DEFAULT_LIMITS, `${name}: no such limit`);
    checkBetween(name, limit, 0, Infinity);
  }
  for (const budget of BUDGETS) {
    const isLimited = limits[budget.epsilon] < Infinity;
    demand(
      !isLimited || limits[budget.delta] < 1,
      `${budget.delta}=${limits[budget.delta]}: a limit of ε needs a δ below 1`,
    );
  }
  return { ...limits, any_delta };
}

/**
 * Yield every reason for which a phone with these limits refuses a phase.
 *
 * `today` is the present day in UTC, such as `2026-01-08`.
 */
export function* refusalsOfPhase(
  limits: Limits,
  given: Parameters,
  ledger: Ledger,
  today: string,
): Generator<RefusedError, void> {
  if (given.summation === "bell") {
    yield refusalOfBell();
    return;
  }
  let planned: readonly Expense[];
  try {
    checkParameters(given);
    planned = expensesOf(given, 1);
  } catch (error) {
    if (!(error instanceof InvalidParametersError)) throw error;
    yield new RefusedError(`the phase's parameters are not valid: ${error.message}`, "parameters");
    return;
  }
  const { phones, dropout } = given;
  if (!(phones >= limits.least_phones)) {
    const accepted = `at least ${limits.least_phones} is accepted`;
    yield refusal("least_phones", `phones=${phones}; ${accepted}`);
  }
  yield* atMost(limits, "largest_phones", "phones", phones);
  yield* atMost(limits, "largest_dropout", "dropout", dropout);
  if (honestSurvivors(given) < 1) {
    yield new RefusedError("dropout and corrupted must stay below 1 together", "parameters");
  }
  // If a phone with a spent budget may abstain unseen, its past expenses are no reason.
  const paying = weightsOf(given).includes(0) ? new Ledger() : ledger;
  yield* refusalsOfCost(limits, planned, paying, today);
  const delta = statedDelta(planned.filter((each) => each.release.unit === "recording"));
  if (!limits.any_delta && !(delta * phones < 1)) {
    yield refusal(
      "delta",
      `δ of the phase=${delta} with ${phones} phones; below 1/phones is accepted`,
    );
  }
}

/**
 * Return the weight of a phone with these limits in a phase that it accepts: the largest that its
 * budgets allow. It depends on nothing that the phone has heard, and no sum reveals it.
 */
export function weightFor(
  limits: Limits,
  given: Parameters,
  ledger: Ledger,
  today: string,
): number {
  const weights = weightsOf(given);
  const fits = (weight: number): boolean | undefined =>
    refusalsOfCost(limits, expensesOf(given, weight), ledger, today).next().done;
  return weights.slice(0, -1).find(fits) ?? weights.at(-1)!;
}

/**
 * Yield every reason for which a phone with these limits does not spend these expenses.
 *
 * `phase` is their phase, if the phone has released something in it before.
 */
export function* refusalsOfCost(
  limits: Limits,
  expenses: readonly Expense[],
  ledger: Ledger,
  today: string,
  phase?: Bytes,
): Generator<RefusedError, void> {
  for (const unit of UNITS) {
    const added = expenses.filter((each) => each.release.unit === unit && !isNothing(each.event));
    if (!added.length) continue;
    const before = {
      phase: phase === undefined ? [] : ledger.expensesOf(unit, { phase }),
      year: ledger.expensesOf(unit, { today }),
      life: ledger.expensesOf(unit),
    };
    for (const budget of BUDGETS.filter((each) => each.unit === unit)) {
      const refused = [...refusalsOfBudget(limits, budget, before[budget.span], added)];
      yield* refused;
      if (refused.length) break; // one exceeded budget per unit is enough
    }
  }
}

/** Return spent ε and its limit in every unit, for 366 days and for the phone's life. */
export function standing(limits: Limits, ledger: Ledger, today: string): readonly Standing[] {
  return BUDGETS.filter((budget) => budget.span !== "phase").map((budget) => {
    const { span, unit } = budget;
    // Without a limit, ε is stated at the default δ.
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

/** Return why a phone refuses parameters that it did not agree to; null if they are the same. */
export function refusalOfChange(agreed: Parameters, proposed: Parameters): RefusedError | null {
  const isSame = compared(canonical(parameters, agreed), canonical(parameters, proposed)) === 0;
  return isSame
    ? null
    : refusal("changed", "parameters stay as this phone agreed to them");
}

/**
 * Yield why a phone with this encoder refuses a phase: another encoder, or more dimensions than an
 * embedding of this one has.
 */
export function* refusalsOfEncoder(
  given: Parameters,
  encoder: string,
  dimensions: number,
): Generator<RefusedError, void> {
  const reads = readsOf(given);
  if (reads && reads.encoder !== encoder) {
    yield refusal(
      "encoder",
      `the phase is about embeddings of '${reads.encoder}'; this phone's are of '${encoder}'`,
    );
  }
  if (reads && reads.dimensions > dimensions) {
    yield new RefusedError(
      `dimensions=${reads.dimensions}: an embedding has ${dimensions}`,
      "dimensions",
    );
  }
}

function* refusalsOfBudget(
  limits: Limits,
  budget: LedgerBudget,
  before: readonly Expense[],
  added: readonly Expense[],
): Generator<RefusedError, void> {
  const [epsilon, delta] = [limits[budget.epsilon], limits[budget.delta]];
  if (delta >= 1) return; // then ε has no limit: any expense fits
  const together = [...before, ...added];
  const stated = statedDelta(together);
  // A stated infinite ε stays infinite in a ledger, even if a larger δ gives a finite one.
  const isBoundless = added.some((each) => each.release.epsilon === Infinity);
  const reached = isBoundless ? Infinity : epsilonAt(delta, together);
  const fits = isAtMost(reached, epsilon);
  if (fits && stated <= delta) return;
  const spent = before.length ? `, with ${epsilonAt(delta, before)} already spent` : "";
  const over = `${OVER[budget.span]} per ${budget.unit}`;
  // A phase keeps the δ that it states; over phases only the composed cost counts.
  if (stated > delta && (budget.span === "phase" || !fits)) {
    yield* atMost(limits, budget.epsilon, `ε ${over}${spent}`, addedEpsilon(together));
    yield* atMost(limits, budget.delta, `δ ${over}`, stated);
  }
  if (stated <= delta && !fits) {
    // For a whole phase, state at least the ε that reports and operators see, at a smaller δ.
    const isWhole = budget.span === "phase" && !before.length;
    const told = isWhole ? Math.max(reached, composedCost(added).epsilon) : reached;
    yield* atMost(limits, budget.epsilon, `ε ${over}${spent}`, told);
  }
}

function* atMost(
  limits: Limits,
  rule: keyof typeof DEFAULT_LIMITS & Rule,
  what: string,
  value: number,
): Generator<RefusedError, void> {
  if (isAtMost(value, limits[rule])) return;
  yield refusal(rule, `${what}=${value}; at most ${limits[rule]} is accepted`);
}

function isAtMost(value: number, limit: number): boolean {
  return value <= limit || (value < Infinity && value - limit <= SLACK * value);
}
