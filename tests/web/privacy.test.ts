import assert from "node:assert/strict";
import { test } from "node:test";

import {
  InvalidInputError,
  InvalidParametersError,
  WrongStateError,
} from "../../client/web/protocol/errors.ts";
import {
  limitsOf,
  refusalOfChange,
  refusalsOfCost,
  refusalsOfEncoder,
  refusalsOfPhase,
  standing,
  weightFor,
} from "../../client/web/protocol/phases/acceptance.ts";
import {
  expensesOf,
  type Parameters,
  parameters,
  planOf,
  sumOf,
} from "../../client/web/protocol/phases/plan.ts";
import {
  composedCost,
  epsilonAt,
  type Expense,
} from "../../client/web/protocol/privacy/accounting.ts";
import { BUDGETS } from "../../client/web/protocol/privacy/budgets.ts";
import { composedEpsilon } from "../../client/web/protocol/privacy/composition.ts";
import { exp, expm1, log, log1p } from "../../client/web/protocol/privacy/elementary.ts";
import { DamagedLedgerError, Ledger } from "../../client/web/protocol/privacy/ledger.ts";
import { RULES } from "../../client/web/protocol/rules.ts";
import { read, vectors } from "./vectors.ts";

const PHASE = new Uint8Array(16);
const TODAY = "2026-01-08";

/** Whether two numbers agree to a few units in the last place. */
function isClose(found: number, wanted: number, error = 1e-15): boolean {
  return found === wanted || Math.abs(found - wanted) <= error * Math.abs(wanted);
}

async function phases(): Promise<Record<"discovery" | "labelling" | "statistics", Parameters>> {
  const { releases } = await vectors("two_operators");
  return Object.fromEntries(
    releases
      .filter(({ parameters: { type } }: any) => type !== "learning")
      .map((each: any) => [each.parameters.type, read(parameters, each.parameters)]),
  ) as never;
}

const rules = (refusals: Iterable<{ rule: string }>): string[] =>
  [...refusals].map((each) => each.rule);

test("exponentials and logarithms agree with the engine's", () => {
  const points = [
    1e-300,
    1e-17,
    1e-9,
    1e-3,
    0.1,
    0.29,
    0.31,
    0.34,
    0.36,
    0.5,
    0.7,
    1,
    Math.SQRT2,
    2,
    3.7,
    10,
    99.5,
    700,
  ];
  for (const x of points.flatMap((point) => [point, -point])) {
    assert.ok(isClose(exp(x), Math.exp(x)), `exp ${x}`);
    assert.ok(isClose(expm1(x), Math.expm1(x), 4e-15), `expm1 ${x}`);
    if (x > -1) assert.ok(isClose(log1p(x), Math.log1p(x), 4e-15), `log1p ${x}`);
    if (x > 0) {
      assert.ok(isClose(log(x), Math.log(x)), `log ${x}`);
      assert.ok(isClose(log(exp(x)), x, 1e-14 / Math.min(1, x)), `log exp ${x}`);
    }
  }
  assert.deepEqual(
    [
      exp(710),
      exp(-746),
      exp(-745),
      exp(0),
      exp(NaN),
      expm1(-800),
      log(0),
      log(-1),
      log(Infinity),
      log(1),
    ],
    [Infinity, 0, 5e-324, 1, NaN, -1, -Infinity, NaN, Infinity, 0],
  );
  assert.ok(isClose(log(5e-324), Math.log(5e-324)));
});

test("zCDP costs what one over many orders finds", () => {
  for (const [rho, delta] of [
    [0.01, 1e-6],
    [0.5, 1e-5],
    [3, 1e-9],
    [1e-5, 1e-3],
  ] as const) {
    let best = Infinity;
    for (let at = 0; at < 200_000; at++) {
      const order = 1.0001 * Math.exp((at / 200_000) * Math.log(1e6));
      best = Math.min(
        best,
        order * rho + Math.log1p(-1 / order) - Math.log(delta * order) / (order - 1),
      );
    }
    const found = composedEpsilon([{ event: "zcdp", rho }], delta);
    assert.ok(found >= best * (1 - 1e-9) && found <= best * 1.001, `${found} ${best}`);
  }
});

test("pure releases compose below their sum, and no less than binomial losses allow", () => {
  const [count, epsilon, delta] = [30, 0.2, 1e-5];
  const events = Array.from(
    { length: count },
    () => ({ event: "pure", epsilon, times: 1 }) as const,
  );
  const found = composedEpsilon(events, delta);
  assert.ok(found < count * epsilon);
  // δ of the composition of randomized responses at that ε, by its definition.
  const p = 1 / (1 + Math.exp(-epsilon));
  let [chance, reached] = [(1 - p) ** count, 0];
  for (let ups = 0; ups <= count; ups++) {
    const loss = (2 * ups - count) * epsilon;
    reached += chance * Math.max(0, 1 - Math.exp(found - loss));
    chance *= ((count - ups) / (ups + 1)) * (p / (1 - p));
  }
  assert.ok(reached <= delta && reached > delta * 0.98, `${reached}`);
  assert.equal(composedEpsilon(events, 0), 6); // and not what thirty roundings make of it
  assert.equal(composedEpsilon([{ event: "zcdp", rho: 1 }], 0), Infinity);
  assert.equal(composedEpsilon(events, 1), 0);
  assert.equal(composedEpsilon([], 1e-6), 0);
});

test("a ledger holds what was written, and nothing else", async () => {
  const { statistics, discovery } = await phases();
  const ledger = await Ledger.open();
  const written = [
    ...(await ledger.append(PHASE, expensesOf(statistics, 1), TODAY)),
    ...(await ledger.append(new Uint8Array(16).fill(1), expensesOf(discovery, 1), TODAY)),
  ];
  assert.equal(written.length, 8);
  const again = await Ledger.open(written);
  assert.deepEqual(again.entries, ledger.entries);
  const { event } = again.export()[0] as any;
  // One of 20 contacts among seven numbers, with noise of 5.5 lengths: 207.4 steps of 4,096.
  assert.ok(event.event === "zcdp" && isClose(event.rho, 4.236984018312678e-5, 1e-9));
  await assert.rejects(again.append(PHASE, expensesOf(statistics, 1), TODAY), WrongStateError);
  for (let at = 0; at < written.length - 1; at++) {
    const cut = written.filter((_, other) => other !== at);
    await assert.rejects(Ledger.open(cut), DamagedLedgerError);
  }
  const changed = written.map((entry) => entry.slice());
  changed[2]![20]! ^= 1;
  await assert.rejects(Ledger.open(changed), DamagedLedgerError);
  await assert.rejects(Ledger.open([new Uint8Array(9)]), DamagedLedgerError);
  // The chain cannot tell that its end is missing: the store guards its length.
  assert.equal((await Ledger.open(written.slice(0, 5))).entries.length, 5);
});

test("nothing that is no cost is recorded", async () => {
  const { statistics } = await phases();
  const [expense] = expensesOf(statistics, 1);
  const ledger = await Ledger.open();
  for (const own of [
    { epsilon: -1 },
    { epsilon: NaN },
    { delta: 2 },
    { delta: -1 },
    { delta: NaN },
  ]) {
    const wrong = { ...expense!, release: { ...expense!.release, ...own } };
    await assert.rejects(ledger.append(PHASE, [wrong], TODAY), InvalidInputError);
  }
  await assert.rejects(ledger.append(PHASE, [], TODAY), InvalidInputError);
  await assert.rejects(ledger.append(new Uint8Array(15), [expense!], TODAY), InvalidInputError);
  assert.deepEqual(ledger.entries, []);
  const both = await Promise.allSettled([
    ledger.append(PHASE, [expense!], TODAY),
    ledger.append(new Uint8Array(16).fill(1), [expense!], TODAY),
  ]);
  assert.deepEqual(
    both.map(({ status }) => status),
    ["fulfilled", "rejected"],
  );
});

test("a year has 366 days, and no clock that is set back frees anything", async () => {
  const { statistics } = await phases();
  const ledger = await Ledger.open();
  let number = 0;
  const add = async (day: string): Promise<void> => {
    await ledger.append(new Uint8Array(16).fill(++number), expensesOf(statistics, 1), day);
  };
  const left = (today: string): number => ledger.expensesOf("recording", { today }).length;
  await add("2025-01-07");
  await add("2025-01-08");
  assert.equal(left("2026-01-07"), 2);
  assert.equal(left("2026-01-08"), 1);
  await add("2026-05-01");
  await add("2025-01-01"); // no older than the one before it
  assert.equal(left("2026-12-31"), 2);
  assert.equal(ledger.expensesOf("phone").length, 4);
  assert.equal(ledger.expensesOf("phone", { phase: new Uint8Array(16).fill(2) }).length, 1);
});

test("budgets are named by rules, all of which a phone may give", () => {
  assert.equal(BUDGETS.length, 6);
  for (const { epsilon, delta } of BUDGETS) {
    assert.ok(RULES.includes(epsilon) && RULES.includes(delta));
  }
});

test("a phase is refused by the limit that it breaks", async () => {
  const given = await phases();
  const ledger = await Ledger.open();
  const limits = limitsOf({ largest_phone_epsilon: 10 });
  const refused = (own: object, kind: keyof typeof given = "statistics"): string[] =>
    rules(refusalsOfPhase(limits, { ...given[kind], ...own } as Parameters, ledger, TODAY));
  for (const kind of ["statistics", "discovery", "labelling"] as const)
    assert.deepEqual(refused({}, kind), []);
  assert.deepEqual(refused({ summation: "bell" }), ["protocol"]);
  for (const summation of ["two-operators", "two-operators-unproved"])
    assert.deepEqual(refused({ summation }), []);
  assert.deepEqual(refused({ phones: 99 }), ["least_phones"]);
  assert.deepEqual(refused({ phones: 10 ** 7 + 1 }), ["largest_phones", "delta"]);
  assert.deepEqual(refused({ dropout: 0.31 }), ["largest_dropout"]);
  assert.deepEqual(refused({ dropout: 0.3, corrupted: 0.7 }), ["parameters"]);
  assert.deepEqual(refused({ phones: 100, dropout: 0.3, corrupted: 0.695 }), []); // half a phone
  assert.deepEqual(refused({ noise: 0.05 }), ["largest_epsilon", "largest_phone_epsilon"]);
  assert.deepEqual(refused({ noise: 0.5 }), ["largest_phone_epsilon"]);
  assert.deepEqual(refused({ delta: 1e-4 }), ["largest_delta", "largest_phone_delta"]);
  assert.deepEqual(refused({ labels: ["a", "a"] }), ["parameters"]);
  assert.deepEqual(refused({ contacts: 10_001 }), ["parameters"]);
  assert.deepEqual(refused({ since: "2026-01-08" }), ["parameters"]);
  assert.deepEqual(refused({ noise: NaN }), ["parameters"]);
  assert.deepEqual(refused({ cells_noise: 0.5 }, "discovery"), [
    "largest_epsilon",
    "largest_phone_epsilon",
  ]);
  assert.deepEqual(refused({ most_cells: 3 }, "discovery"), ["parameters"]);
  assert.deepEqual(
    refused(
      { most_cells: 1024, start: { dimensions: 1, count: 1, rows: new Uint8Array(2) } },
      "discovery",
    ),
    ["parameters"],
  );
  assert.deepEqual(refused({ delta: 1e-4 }, "discovery"), ["largest_delta", "largest_phone_delta"]);
  assert.deepEqual(refused({ phones: 400_000 }, "discovery"), ["delta"]);
  assert.deepEqual(refused({ threshold: 0 }, "labelling"), ["parameters"]);
  assert.deepEqual(refused({ votes_noise: 1 }, "labelling")[0], "largest_epsilon");
});

test("an infinite ε fits no limit but an infinite one", async () => {
  const { discovery, labelling } = await phases();
  for (const given of [discovery, labelling]) {
    for (const [most, least] of [
      [8, ["largest_epsilon", "largest_delta", "largest_phone_epsilon", "largest_phone_delta"]],
      [Infinity, ["largest_delta", "largest_phone_delta"]],
    ] as const) {
      // Nothing is known to hold of Gaussian noise at a δ of 0.
      const limits = limitsOf({
        ...{ largest_epsilon: most, largest_phone_epsilon: most },
        ...{ largest_delta: 0, largest_phone_delta: 0 },
      });
      const spent = expensesOf(given, 1).map(({ release, event }) => ({
        release: { ...release, epsilon: Infinity },
        event,
      }));
      const found = rules(refusalsOfCost(limits, spent, await Ledger.open(), TODAY));
      assert.deepEqual(found, least);
    }
  }
});

test("what was spent counts against a year and a life", async () => {
  const statistics = { ...(await phases()).statistics, contacts: 1 } as Parameters;
  const ledger = await Ledger.open();
  const limits = limitsOf({
    largest_yearly_epsilon: 1,
    largest_phone_epsilon: 100,
    largest_yearly_phone_epsilon: 100,
    largest_lifetime_phone_epsilon: 100,
  });
  const refused = (today: string): string[] =>
    rules(refusalsOfPhase(limits, statistics, ledger, today));
  await ledger.append(PHASE, expensesOf(statistics, 1), "2025-01-01");
  assert.deepEqual(refused("2025-01-02"), []);
  await ledger.append(new Uint8Array(16).fill(1), expensesOf(statistics, 1), "2025-01-01");
  assert.deepEqual(refused("2025-01-02"), ["largest_yearly_epsilon"]);
  assert.deepEqual(refused("2026-01-02"), []);
  const [year] = standing(limits, ledger, "2025-01-02");
  assert.ok(isClose(year!.epsilon, 0.8913241950276594, 1e-6) && year!.largestEpsilon === 1);
  const expenses = expensesOf(statistics, 1);
  const mine = rules(
    refusalsOfCost(
      limitsOf({ ...limits, largest_epsilon: 0.9 }),
      expenses,
      ledger,
      "2026-01-02",
      PHASE,
    ),
  );
  assert.deepEqual(mine, ["largest_epsilon"]);
});

test("a phone that has spent its budget weighs nothing, and pays nothing", async () => {
  const { labelling } = await phases();
  const ledger = await Ledger.open();
  const given = { ...labelling, largest_weight: 16 } as Parameters;
  const limits = limitsOf();
  const weight = weightFor(limits, given, ledger, TODAY);
  assert.ok(weight > 1 && weight < 16, `${weight}`);
  const poor = limitsOf({ largest_yearly_epsilon: 0.001 });
  assert.equal(weightFor(poor, given, ledger, TODAY), 0);
  const unpaid: readonly Expense[] = expensesOf(given, 0);
  for (const own of [16, 1, 0]) {
    // Of every weight, so that nobody can tell it from the sum's parameters.
    for (const part of planOf(given, own)) assert.equal(sumOf(given, part).bound, 16n);
  }
  assert.deepEqual(rules(refusalsOfCost(poor, unpaid, ledger, TODAY)), []);
  assert.ok(unpaid.every(({ release: { epsilon, delta } }) => epsilon === 0 && delta === 0));
  assert.equal(epsilonAt(1e-6, expensesOf(given, 1)) > 0, true);
  assert.ok(composedCost(expensesOf(given, 1).slice(0, 1)).epsilon > 0);
});

test("other parameters and another encoder are refused", async () => {
  const { discovery, statistics } = await phases();
  assert.equal(refusalOfChange(discovery, { ...discovery }), null);
  assert.equal(refusalOfChange(discovery, { ...discovery, phones: 501 })?.rule, "changed");
  assert.equal(refusalOfChange(discovery, statistics)?.rule, "changed");
  assert.deepEqual(rules(refusalsOfEncoder(discovery, "contrast-3", 128)), []);
  assert.deepEqual(rules(refusalsOfEncoder(discovery, "contrast-1", 1)), ["encoder", "dimensions"]);
  assert.deepEqual(
    rules(refusalsOfEncoder({ ...statistics, places: null } as Parameters, "", 0)),
    [],
  );
});

test("limits that mean nothing are refused", () => {
  const none: readonly object[] = [
    ...[{ largest_epsilon: -1 }, { least_phones: NaN }, { largest_delta: 1 }],
    // What an app without types may write; null is what JSON makes of infinity.
    ...[{ largest_epsilon: "3" }, { largest_epsilon: null }, { largest_epsilon: 3n }],
    ...[{ largest_epsilon: undefined }, { largestEpsilon: 1 }],
  ];
  for (const own of none) assert.throws(() => limitsOf(own), InvalidParametersError);
  assert.equal(limitsOf({ largest_delta: 1, largest_epsilon: Infinity }).any_delta, false);
});
