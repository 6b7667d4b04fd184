/** The phone's pure functions, asked by Python's tests. */

import { type Look, lookedAt, type OwnLook } from "../../client/web/phone/calendar.ts";
import { defaultHierarchy } from "../../client/web/phone/labels.ts";
import { NearestRecordings } from "../../client/web/phone/voters.ts";
import { canonical, sha256 } from "../../client/web/protocol/canonical.ts";
import { classesOf, LabelHierarchy } from "../../client/web/protocol/environments.ts";
import { EarshotError } from "../../client/web/protocol/errors.ts";
import {
  decodeTask,
  encodeReport,
  openingOf,
  type PartTask,
  refusalOf,
  task,
  told,
} from "../../client/web/protocol/messages.ts";
import {
  limitsOf,
  refusalsOfPhase,
  weightFor,
} from "../../client/web/protocol/phases/acceptance.ts";
import {
  expensesOf,
  parameters,
  partOf,
  planOf,
  sumOf,
} from "../../client/web/protocol/phases/plan.ts";
import { Circuit } from "../../client/web/protocol/prio3/circuit.ts";
import { sharded } from "../../client/web/protocol/prio3/prio3.ts";
import { type Proof, type Shape, shapeOf } from "../../client/web/protocol/prio3/shapes.ts";
import { composedCost, epsilonAt } from "../../client/web/protocol/privacy/accounting.ts";
import { composedEpsilon } from "../../client/web/protocol/privacy/composition.ts";
import { Ledger } from "../../client/web/protocol/privacy/ledger.ts";
import { encodeInput, packWords, subtract } from "../../client/web/protocol/secure_sum/encoding.ts";
import { offerDigest, refusalsOfOffer } from "../../client/web/protocol/secure_sum/offer.ts";
import {
  checkSum,
  lengthOf,
  sumParameters,
  widthOf,
} from "../../client/web/protocol/secure_sum/parameters.ts";
import { provedInput } from "../../client/web/protocol/secure_sum/proofs.ts";
import { helperShare, makeReport } from "../../client/web/protocol/secure_sum/report.ts";
import { type Bytes, hex, pack, Real, unpack, type Wire } from "../../client/web/protocol/wire.ts";
import { cellsInput, labelsInput } from "../../client/web/voting/inputs.ts";
import { quantized } from "../../client/web/voting/vectors.ts";
import { answering } from "./line.ts";
import { played } from "./phones.ts";
import { seconds } from "./proof_time.ts";
import { of } from "./vectors.ts";

const LIMIT = 64 * 2 ** 20;
const phase = (digits: string) => parameters.read(unpack(of(digits), LIMIT));
const part = (digits: string) => decodeTask(of(digits)) as PartTask;

/** A map of numbers, as an app would write them; those of 64 bits lose their last digits. */
function numbers(digits: string): object {
  const read = (value: Wire) =>
    typeof value === "boolean" ? value : Number(value instanceof Real ? value.value : value);
  const given = unpack(of(digits), LIMIT) as ReadonlyMap<string, Wire>;
  return Object.fromEntries([...given].map(([name, value]) => [name, read(value)]));
}

function rowsOf(table: number[][], columns: number) {
  return { rows: table.length, columns, values: Float32Array.from(table.flat()) };
}

/** Seconds that count at each look: the clock, how long the page has run, and if it is a new one. */
function counted(looks: readonly [number, number, boolean][]): number[] {
  let [last, own]: [Look | null, OwnLook | undefined] = [null, undefined];
  return looks.map(([clock, uptime, isNew]) => {
    last = lookedAt(last, clock, uptime, isNew ? undefined : own);
    own = { counted: last.counted, uptime };
    return last.counted;
  });
}

const CALLS: Record<string, (...given: any[]) => unknown> = {
  played,
  counted,
  seconds,
  /** Write again what was read, in its own order and in that of names. */
  repacked(digits: string) {
    const value: Wire = unpack(of(digits), LIMIT);
    return [hex(pack(value)), hex(pack(value, true))];
  },
  task(digits: string) {
    const found = decodeTask(of(digits));
    const refused = refusalOf(found);
    return refused ? refused.message : hex(canonical(task, found));
  },
  told: (digits: string, agreed: string) => hex(told(part(digits), phase(agreed))),
  async offered(digits: string, agreed: string, leader: string, helper: string, now: number) {
    const [given, known] = [part(digits), phase(agreed)];
    const expected = sumOf(known, partOf(planOf(known), given));
    const operators = { leaders: [of(leader)], helpers: [of(helper)] };
    const found = await refusalsOfOffer(
      openingOf(given),
      expected,
      told(given, known),
      operators,
      now,
    );
    return found.map((each) => each.rule);
  },
  async digest(digits: string) {
    const { offer } = openingOf(part(digits)).offer!;
    return [hex(await offerDigest(offer)), hex(await sha256())];
  },
  async report(digits: string, input: number[]) {
    return hex(encodeReport(await makeReport(openingOf(part(digits)), input)));
  },
  /** Both shares of an input, and the packed one, of a sum of these parameters. */
  async shares(digits: string, seed: string, input: number[]) {
    const sum = sumParameters.read(unpack(of(digits), LIMIT));
    const share = await helperShare(of(seed), sum);
    const rest = encodeInput(input, sum);
    subtract(rest, share);
    return [[...share].map(String), hex(packWords(rest, widthOf(sum)))];
  },
  /** All parts of a proved input: public, the leader's and the helper's. */
  proved(proof: Proof, digest: string, input: number[], id: string, own: string) {
    const made = provedInput(proof, input.length, of(digest), input, of(id), of(own));
    return [made.public, made.share, made.seed].map(hex);
  },
  /** The same of any vector: its entries as they are, in their lowest bits, the rest as of another. */
  lied(
    proof: Proof,
    digest: string,
    input: number[],
    other: number[],
    id: string,
    own: string,
  ) {
    const shape = shapeOf(proof, input.length);
    const above = Array<number>(proof.proof === "counts" ? proof.width - 1 : 0).fill(0);
    const entries = input.flatMap((value) => [value, ...above]).map(BigInt);
    const careless: Shape = Object.assign(Object.create(shape), {
      fixed: () => [...entries, ...shape.fixed(other).slice(entries.length)],
    });
    const made = sharded(new Circuit(careless), of(digest), input, of(id), of(own));
    return [made.public, made.share, made.seed].map(hex);
  },
  /** Return the elements that an encoded input of a sum has; its parameters are checked. */
  encoded(digits: string) {
    const sum = sumParameters.read(unpack(of(digits), LIMIT));
    checkSum(sum);
    const shape = shapeOf(sum.proof!, lengthOf(sum));
    return shape.squares + shape.bits;
  },
  quantized: (vector: number[]) => [...quantized(Float64Array.from(vector))],
  expenses: (agreed: string, weight: number) => expensesOf(phase(agreed), weight),
  sum(agreed: string, name: string) {
    const known = phase(agreed);
    const found = sumOf(
      known,
      planOf(known).find((each) => each.name === name)!,
    );
    return hex(canonical(sumParameters, found));
  },
  epsilon: (events: any[], delta: number) => String(composedEpsilon(events, delta)),
  /** Enter phases into a ledger, each on its day, and read it back. */
  async ledger(entries: [string, string, number, string][]) {
    const ledger = await Ledger.open();
    const written: Bytes[] = [];
    for (const [name, agreed, weight, day] of entries) {
      written.push(...(await ledger.append(of(name), expensesOf(phase(agreed), weight), day)));
    }
    await Ledger.open(written);
    return written.map(hex);
  },
  /** Judge phases under limits, in MessagePack as JSON has no infinity, of one phone. */
  async judged(ledger: string[], today: string, cases: [string, string][]) {
    const spent = await Ledger.open(ledger.map(of));
    return cases.map(([agreed, stated]) => {
      try {
        const [known, limits] = [phase(agreed), limitsOf(numbers(stated))];
        const rules = [...refusalsOfPhase(limits, known, spent, today)].map((each) => each.rule);
        return { rules, weight: rules.length ? null : weightFor(limits, known, spent, today) };
      } catch (error) {
        if (!(error instanceof EarshotError)) throw error;
        return { error: error.name };
      }
    });
  },
  async spent(ledger: string[], unit: "recording" | "phone", today: string, delta: number) {
    const expenses = (await Ledger.open(ledger.map(of))).expensesOf(unit, { today });
    return [String(epsilonAt(delta, expenses)), composedCost(expenses)];
  },
  /** Classes and choices of everyday life. */
  usual: () => defaultHierarchy().groups,
  votes(points: number[][], labels: (string | null)[], samples: number[][], columns: number) {
    return new NearestRecordings(rowsOf(points, columns), labels).answers(rowsOf(samples, columns));
  },
  async hierarchy(groups: [string, string[]][], choices: (string | null)[]) {
    const known = new LabelHierarchy(groups);
    return [hex(await known.digest()), classesOf(choices, known, known)];
  },
  cells(digits: string, agreed: string, points: number[][], groups: [string, string[]][]) {
    const known = phase(agreed);
    if (known.type !== "discovery") throw new Error("no discovery phase");
    const rows = rowsOf(points, known.start.dimensions);
    return [...cellsInput(known, part(digits) as any, rows, new LabelHierarchy(groups))];
  },
  labels(
    digits: string,
    agreed: string,
    points: number[][],
    choices: (string | null)[],
    groups: any,
  ) {
    const known = phase(agreed);
    if (known.type !== "discovery") throw new Error("no discovery phase");
    const hierarchy = new LabelHierarchy(groups);
    const rows = rowsOf(points, known.start.dimensions);
    const classes = classesOf(choices, hierarchy, hierarchy);
    return [...labelsInput(known, part(digits) as any, rows, choices, classes, hierarchy)];
  },
};

await answering(CALLS);
