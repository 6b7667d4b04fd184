import assert from "node:assert/strict";
import { test } from "node:test";

import { sha256 } from "../../client/web/protocol/canonical.ts";
import {
  InvalidInputError,
  InvalidParametersError,
  MalformedMessageError,
  UnexpectedMessageError,
} from "../../client/web/protocol/errors.ts";
import {
  decodeTask,
  encodeReport,
  openingOf,
  type PartTask,
  task,
  told,
} from "../../client/web/protocol/messages.ts";
import {
  checkParameters,
  expensesOf,
  parameters,
  partOf,
  planOf,
  sumOf,
  weightsOf,
} from "../../client/web/protocol/phases/plan.ts";
import {
  gaussian,
  noiseOfOperators,
  reach,
} from "../../client/web/protocol/privacy/sum_noise.ts";
import { encodeInput, packWords, subtract } from "../../client/web/protocol/secure_sum/encoding.ts";
import { exchanged, keyPair } from "../../client/web/protocol/secure_sum/exchange.ts";
import {
  offerDigest,
  refusalsOfOffer,
  type SendReport,
  sendReport,
} from "../../client/web/protocol/secure_sum/offer.ts";
import {
  checkSum,
  lengthOf,
  sumParameters,
  type SumParameters,
  widthOf,
} from "../../client/web/protocol/secure_sum/parameters.ts";
import { draw, helperShare, makeReport } from "../../client/web/protocol/secure_sum/report.ts";
import { type Bytes, hex, joined, unpack } from "../../client/web/protocol/wire.ts";
import { of, read, vectors } from "./vectors.ts";

const all = await vectors("two_operators");
const SPOKEN = ["discovery", "labelling", "statistics"];
const operators = {
  leaders: [of(all.operators.leader.public)],
  helpers: [of(all.operators.helper.public)],
};

function opening(digits: string): SendReport {
  const given = unpack(of(digits), 2 ** 20) as Map<string, any>;
  given.delete("type");
  return sendReport.read(given);
}

/** The key pair of 32 private bytes, with the public ones beside it. */
async function pair(secret: Bytes, publicKey: Bytes): Promise<CryptoKeyPair> {
  const pkcs8 = joined(of("302e020100300506032b656e04220420"), secret);
  return {
    privateKey: await crypto.subtle.importKey("pkcs8", pkcs8, "X25519", false, ["deriveBits"]),
    publicKey: await crypto.subtle.importKey("raw", publicKey, "X25519", true, []),
  };
}

test("reach and width", () => {
  for (const { phones, length, bound, noise, reach: far, width } of all.widths) {
    const stated = read(noiseOfOperators, noise);
    assert.equal(reach(stated, length), BigInt(far));
    const terms = { phones, shape: [length], bound, noise, least: 2, window: 1 };
    assert.equal(widthOf(read(sumParameters, terms)), width);
  }
});

test("the parameters of a sum follow from those of its phase", () => {
  const seen = new Set<string>();
  for (const { parameters: given, part: name, sum, width } of all.sums) {
    if (!SPOKEN.includes(given.type)) continue;
    const phase = read(parameters, given);
    checkParameters(phase);
    const part = planOf(phase).find((each) => each.name === name)!;
    const found = sumOf(phase, { ...part, shape: sum.shape });
    assert.deepEqual(found, read(sumParameters, sum));
    assert.equal(widthOf(found), width);
    seen.add(`${phase.summation}, ${name}: ${found.proof?.proof}`);
  }
  const proofs = { cells: "norm", labels: "norm", histogram: "norm", votes: "counts", check: "counts" };
  for (const [name, proof] of Object.entries(proofs)) {
    for (const [summation, wanted] of [
      ["two-operators", proof],
      ["two-operators-unproved", "undefined"],
    ] as const) {
      const found = [...seen].filter((each) => each.startsWith(`${summation}, ${name}`));
      assert.ok(found.length > 0 && found.every((each) => each.endsWith(`: ${wanted}`)), name);
    }
  }
});

test("sums under which nothing should run are refused", () => {
  const good = read(sumParameters, all.sums[2].sum);
  checkSum(good);
  for (const wrong of [
    { phones: 2 },
    { phones: 10 ** 8 + 1 },
    { shape: [0] },
    { shape: [2 ** 13, 2 ** 12] },
    { shape: Array<number>(9).fill(1) },
    { bound: 0n },
    { bound: 2n ** 62n },
    { least: 1 },
    { least: good.phones + 1 },
    { window: 0 },
    { window: Infinity },
    { window: NaN },
    { noise: { law: "discrete-laplace", fine_scale: 0n } },
    { noise: { law: "discrete-gaussian", fine_variance: 2n ** 62n + 1n } },
  ] as Partial<SumParameters>[]) {
    assert.throws(() => checkSum({ ...good, ...wrong }), InvalidParametersError);
  }
});

test("what a phase costs follows from one operator's noise", () => {
  let seen = 0;
  for (const { parameters: given, releases } of all.releases) {
    if (!SPOKEN.includes(given.type)) continue;
    const phase = read(parameters, given);
    const found = expensesOf(phase, weightsOf(phase)[0]!).map((each) => each.release);
    assert.equal(found.length, releases.length);
    releases.forEach((kept: any, at: number) => {
      const { epsilon, ...rest } = found[at]!;
      assert.ok(Math.abs(epsilon / kept.epsilon - 1) < 1e-12, `${epsilon} ${kept.epsilon}`);
      assert.deepEqual({ epsilon: kept.epsilon, ...rest }, kept);
      seen += 1;
    });
  }
  assert.equal(seen, 24);
});

test("an input is split as the vectors say, in words of every size", async () => {
  const widths = new Set();
  for (const { width, seed, input, helpers_share, leaders_share, packed, ...terms } of all.shares) {
    const flat = input.flat();
    const given = { ...terms, shape: [flat.length], least: 2, window: 1 };
    const sum = read(sumParameters, given);
    assert.equal(widthOf(sum), width);
    const size = 2n ** BigInt(width);
    const share = await helperShare(of(seed), sum);
    const cut = (word: number | bigint): bigint => BigInt(word) % size;
    assert.deepEqual([...share].map(cut), helpers_share.map(BigInt));
    const rest = encodeInput(flat, sum);
    subtract(rest, share);
    assert.deepEqual([...rest].map(cut), leaders_share.map(BigInt));
    assert.equal(hex(packWords(rest, width)), packed);
    widths.add(rest.BYTES_PER_ELEMENT);
  }
  assert.deepEqual([...widths].sort(), [2, 4, 8]);
});

test("words are packed without gaps, at every width", async () => {
  const { packed } = await vectors("masks");
  for (const { modulus_bits: bits, values, packed: digits } of packed) {
    const big = BigUint64Array.from(values as number[], BigInt);
    assert.equal(hex(packWords(big, bits <= 32 ? 33 : bits)).length > 0, true);
    const words = bits > 32 ? big : bits > 16 ? Uint32Array.from(values) : Uint16Array.from(values);
    assert.equal(hex(packWords(words, bits)), digits);
  }
});

test("what is told of a task, and the digests of task and offer", async () => {
  let seen = 0;
  for (const each of all.offers) {
    const given = decodeTask(of(each.task)) as PartTask;
    const agreed = read(parameters, each.parameters);
    assert.equal(hex(told(given, agreed)), each.told);
    assert.equal(hex(await sha256(told(given, agreed))), each.task_digest);
    const { offer } = openingOf(given).offer!;
    assert.equal(hex(await offerDigest(offer)), each.offer_digest);
    assert.equal(hex(offer.task), each.task_digest);
    const part = partOf(planOf(agreed), given);
    // The offer of the vectors is for this task; its parameters are those that the phone derives.
    const { opens } = offer;
    const expected = sumOf(agreed, { ...part, shape: offer.parameters.shape });
    const refused = await refusalsOfOffer(
      openingOf(given),
      expected,
      told(given, agreed),
      operators,
      opens,
    );
    assert.deepEqual(refused, []);
    // One letter of the task more, and another offer is needed.
    const changed = { ...agreed, labels: [...agreed.labels.slice(0, -1), "another"] };
    const [other] = await refusalsOfOffer(
      openingOf(given),
      expected,
      told(given, changed),
      operators,
      opens,
    );
    assert.equal(other?.rule, "wrong_offer");
    assert.deepEqual(task.read(task.write(given, false)), given);
    seen += 1;
  }
  assert.equal(seen, 2);
});

test("an offer is refused by the first rule that is broken", async () => {
  const rules = new Map<string, number>();
  for (const each of all.refused) {
    const sum = all[each.of];
    const expected = opening(sum.phones[0].task).offer!.offer.parameters;
    const known = { leaders: each.leaders.map(of), helpers: each.helpers.map(of) };
    const [first] = await refusalsOfOffer(
      opening(each.task),
      expected,
      of(sum.told),
      known,
      each.now,
      each.proves ? undefined : () => Promise.reject(new TypeError("Failed to fetch")),
    );
    assert.equal(first?.rule ?? null, each.rule, each.why);
    if (first) assert.ok(first.message.startsWith(`${first.rule}: `));
    rules.set(`${each.rule}`, (rules.get(`${each.rule}`) ?? 0) + 1);
  }
  assert.deepEqual([...rules.keys()].sort(), [
    "closed",
    "null",
    "proofs",
    "too_few",
    "unknown_helper",
    "weak_noise",
    "wrong_offer",
  ]);
});

test("whatever is to be proved, a phone without what proves refuses by that name", async () => {
  const [phone] = all.sum.phones;
  const given = opening(phone.task);
  const { parameters: stated, opens } = given.offer!.offer;
  for (const proof of [
    null,
    { proof: "norm" },
    { proof: "counts", width: 1, total: 1, block: 2 },
  ] as const) {
    const load = () => Promise.reject(new TypeError("Failed to fetch"));
    const expected = { ...stated, proof };
    const told = of(all.sum.told);
    const [first] = await refusalsOfOffer(given, expected, told, operators, opens, load);
    assert.equal(first?.rule, proof === null ? undefined : "proofs");
  }
});

test("each of the two signatures is needed", async () => {
  const [phone] = all.sum.phones;
  const given = opening(phone.task);
  const signed = given.offer!;
  for (const who of ["helper", "leader"] as const) {
    const forged = signed[who].slice();
    forged[0]! ^= 1;
    const [first] = await refusalsOfOffer(
      { ...given, offer: { ...signed, [who]: forged } },
      signed.offer.parameters,
      of(all.sum.told),
      operators,
      signed.offer.opens,
    );
    assert.equal(first?.rule, "wrong_offer", who);
  }
});

test("noise is stated as no less than it is", () => {
  assert.deepEqual(gaussian(2 / 3), { law: "discrete-gaussian", fine_variance: 43_691n });
  assert.deepEqual(gaussian(1e-9), { law: "discrete-gaussian", fine_variance: 1n });
});

test("a report is that of the vectors, bit for bit, and its seed is erased", async () => {
  let seen = 0;
  for (const phone of all.sum.phones) {
    const given = opening(phone.task);
    if (!phone.opens) continue; // sealed to another key, which no phone does
    const wanted = unpack(of(phone.report), 2 ** 20) as Map<string, Bytes>;
    const drawn = {
      random: of(phone.seed),
      reportId: wanted.get("report_id")!,
      ephemeral: await pair(of(phone.ephemeral), wanted.get("sealed")!.slice(0, 32)),
    };
    const report = await makeReport(given, phone.input.flat(), drawn);
    assert.equal(hex(encodeReport(report)), phone.report);
    assert.deepEqual(drawn.random, new Uint8Array(32));
    seen += 1;
  }
  assert.ok(seen >= 3);
});

test("a proved report is that of the vectors, bit for bit, and of nothing but a valid input", async () => {
  const kinds = new Set<boolean>();
  for (const phone of [...all.proved_sum.phones, ...all.proved_vectors.phones]) {
    const given = opening(phone.task);
    const wanted = unpack(of(phone.report), 2 ** 20) as Map<string, Bytes>;
    const drawn = {
      random: of(phone.randomness),
      reportId: wanted.get("report_id")!,
      ephemeral: await pair(of(phone.ephemeral), wanted.get("sealed")!.slice(0, 32)),
    };
    const making = makeReport(given, phone.input.flat(), drawn);
    if (phone.counts) assert.equal(hex(encodeReport(await making)), phone.report);
    else await assert.rejects(making, InvalidInputError);
    assert.deepEqual(drawn.random, new Uint8Array(128));
    const own = await makeReport(given, all.proved_sum.phones[0].input.flat());
    assert.equal(own.share.length, wanted.get("share")!.length);
    assert.notEqual(hex(own.public), hex(wanted.get("public")!));
    kinds.add(phone.counts);
  }
  assert.deepEqual(kinds, new Set([true, false]));
});

test("a report is drawn anew each time, and of nothing but an input", async () => {
  const [phone] = all.sum.phones;
  const given = opening(phone.task);
  const input = phone.input.flat();
  const [one, other] = [await makeReport(given, input), await makeReport(given, input)];
  for (const name of ["report_id", "sealed", "share"] as const) {
    assert.notEqual(hex(one[name]), hex(other[name]));
  }
  const [first, second] = [await draw(), await draw()];
  assert.notEqual(hex(first.random), hex(second.random));
  const { bound } = given.offer!.offer.parameters;
  const beyond = Number(bound) + 1;
  for (const wrong of [
    input.slice(1),
    [...input, 0],
    [0.5, ...input.slice(1)],
    [NaN, ...input.slice(1)],
    [beyond, ...input.slice(1)],
    [-beyond, ...input.slice(1)],
  ]) {
    await assert.rejects(makeReport(given, wrong), InvalidInputError);
  }
  await assert.rejects(makeReport({ ...given, offer: null }, input), UnexpectedMessageError);
  const signed = given.offer!;
  const low = {
    ...given,
    offer: { ...signed, offer: { ...signed.offer, key: new Uint8Array(32) } },
  };
  await assert.rejects(makeReport(low, input), MalformedMessageError);
  assert.equal(lengthOf(signed.offer.parameters), input.length);
});

test("a key pair that an engine could not make is drawn again, and not for ever", async () => {
  const generate = crypto.subtle.generateKey;
  const fail = (failures: number): void => {
    crypto.subtle.generateKey = ((...given: Parameters<typeof generate>) => {
      if (failures-- > 0) throw new DOMException("The operation failed", "OperationError");
      return generate.apply(crypto.subtle, given);
    }) as typeof generate;
  };
  try {
    for (const failures of [0, 3]) {
      fail(failures);
      const [one, other] = [await keyPair(), await keyPair()];
      const shown = new Uint8Array(await crypto.subtle.exportKey("raw", other.publicKey));
      assert.equal((await exchanged(one.privateKey, shown)).length, 32);
    }
    fail(4);
    await assert.rejects(keyPair(), DOMException);
  } finally {
    crypto.subtle.generateKey = generate;
  }
});
