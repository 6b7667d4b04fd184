/** Proofs of inputs against the vectors of the draft, and the arithmetic below them. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { InvalidInputError } from "../../client/web/protocol/errors.ts";
import { Circuit } from "../../client/web/protocol/prio3/circuit.ts";
import {
  decode,
  element,
  encode,
  MODULUS,
  power,
  powers,
} from "../../client/web/protocol/prio3/field.ts";
import { between } from "../../client/web/protocol/prio3/polynomials.ts";
import { sharded } from "../../client/web/protocol/prio3/prio3.ts";
import { type Proof, shapeOf } from "../../client/web/protocol/prio3/shapes.ts";
import { derived, expanded, firstBelow } from "../../client/web/protocol/prio3/xof.ts";
import { hex } from "../../client/web/protocol/wire.ts";
import { bytesOf } from "./files.ts";
import { of } from "./vectors.ts";

const draft = JSON.parse(
  new TextDecoder().decode(await bytesOf("tests/protocol/prio3_vectors.json")),
);
const [TAG, SEED, BINDER] = [of(draft.xof.dst), of(draft.xof.seed), of(draft.xof.binder)];

test("seeds and elements are those of the draft", () => {
  assert.equal(hex(derived(32, TAG, SEED, BINDER)), draft.xof.derived_seed);
  const elements = expanded(draft.xof.length, TAG, SEED, BINDER);
  assert.equal(hex(encode(elements)), draft.xof.expanded_vec_field128);
});

test("a stream of any size begins with each shorter one, whatever it absorbs", () => {
  // A rate of 168 bytes, less 1 of padding and 3 of lengths: the input ends before, at, or behind.
  for (const size of [0, 163, 164, 165, 332, 500]) {
    const long = derived(600, new Uint8Array(), SEED.slice(0, 0), new Uint8Array(size));
    for (const end of [0, 1, 167, 168, 169, 336]) {
      const short = derived(end, new Uint8Array(), SEED.slice(0, 0), new Uint8Array(size));
      assert.equal(hex(short), hex(long.slice(0, end)));
    }
  }
  const pieces = [
    [of("61"), of("62"), of("63")],
    [of("6162"), of(""), of("63")],
    [of("62"), of("61"), of("63")],
    [of(""), of("6162"), of("63")],
    [of("61"), of(""), of("6263")],
  ] as const;
  assert.equal(new Set(pieces.map((each) => hex(derived(32, ...each)))).size, pieces.length);
});

test("numbers that are not below the prime are skipped", () => {
  for (const [stream, wanted] of [
    [[1n, 2n, 3n], [1n, 2n, 3n]],
    [
      [MODULUS, 5n, 2n ** 128n - 1n, MODULUS + 1n, 6n, MODULUS - 1n, 8n],
      [5n, 6n, MODULUS - 1n],
    ],
    [[7n, 8n, MODULUS, 9n], [7n, 8n, 9n]],
  ] as const) {
    assert.deepEqual(
      firstBelow(3, (size) => encode(stream).slice(0, size)),
      wanted,
    );
  }
});

test("elements are whole numbers below the prime, in 16 bytes", () => {
  assert.equal(MODULUS, 2n ** 128n - 28n * 2n ** 64n + 1n);
  assert.deepEqual([-1n, MODULUS, -MODULUS, 3n].map(element), [MODULUS - 1n, 0n, 0n, 3n]);
  const some = [0n, 1n, 2n ** 64n - 1n, 2n ** 64n, MODULUS - 1n];
  assert.deepEqual(decode(encode(some)), some);
  assert.equal(hex(encode([2n ** 64n + 2n])), "02000000000000000100000000000000");
  assert.equal(element(power(3n, MODULUS - 2n) * 3n), 1n);
  assert.deepEqual(powers(5n, 4), [1n, 5n, 25n, 125n]);
});

test("polynomials are evaluated between the points that define them", () => {
  for (const order of [2, 4, 32]) {
    // A root of twice the order, and a polynomial by its coefficients: Horner's rule.
    const root = power(7n, (MODULUS - 1n) / BigInt(2 * order));
    const coefficients = Array.from({ length: order }, (_, at) => power(3n, BigInt(50 + at)));
    const values = powers(root, 2 * order).map((x) =>
      coefficients.reduceRight((sum, each) => element(sum * x + each), 0n),
    );
    const [even, odd] = [0, 1].map((rest) => values.filter((_, at) => at % 2 === rest));
    assert.deepEqual(between(order)(even!), odd);
  }
});

test("ballots are split and proved as the draft's vectors say", () => {
  const sizes = new Set<string>();
  for (const { length, max_weight, chunk_length, ctx, shares, reports } of draft.multihot) {
    if (shares !== 2) continue; // of more operators than there are here
    const ballot = { proof: "counts", width: 1, total: max_weight, block: length } as const;
    const circuit = new Circuit(shapeOf(ballot, length), chunk_length);
    for (const { measurement, nonce, rand, public_share, input_shares } of reports) {
      const values = measurement.map(Number);
      const random = of(rand);
      const found = sharded(circuit, of(ctx), values, of(nonce), random);
      assert.equal(hex(found.public), public_share);
      assert.deepEqual([found.share, found.seed].map(hex), input_shares);
      random.fill(0);
      assert.deepEqual(found.seed, new Uint8Array(64), "erased with the randomness");
      sizes.add(`${length} ${max_weight} ${chunk_length}`);
    }
  }
  assert.deepEqual([...sizes].sort(), ["4 2 2", "4 4 1"]);
});

const BALLOT: Proof = { proof: "counts", width: 1, total: 2, block: 3 };
const VOTES: Proof = { proof: "counts", width: 2, total: 4, block: 2 };
const NORM: Proof = { proof: "norm" };

function split(proof: Proof, length: number, values: readonly number[]): unknown {
  const [nonce, random] = [new Uint8Array(16), new Uint8Array(128)];
  return sharded(new Circuit(shapeOf(proof, length)), new Uint8Array(), values, nonce, random);
}

test("nothing but a ballot is split", () => {
  for (const wrong of [
    [1, 1, 1],
    [2, 0, 0],
    [1, -1, 1],
    [0.5, 0, 0],
    [NaN, 0, 0],
    [1, 1],
    [0, 0, 0, 0],
  ]) {
    assert.throws(() => split(BALLOT, 3, wrong), InvalidInputError);
  }
});

test("nothing but counts with small blocks is split", () => {
  split(VOTES, 4, [3, 1, 0, 3]);
  for (const wrong of [
    [3, 2, 0, 0],
    [0, 0, 2, 3],
    [4, 0, 0, 0],
    [5, -1, 0, 0],
    [1.5, 0, 0, 0],
    [0, 0, 0, NaN],
    [1, 1],
  ]) {
    assert.throws(() => split(VOTES, 4, wrong), InvalidInputError);
  }
});

test("nothing but a short vector of whole numbers is split", () => {
  // 4095² = 2^24 − 8191, and 8190 = 90² + 9² + 3².
  const longest = [4095, -90, 9, 3, 0];
  split(NORM, 5, longest);
  for (const wrong of [
    [4095, -90, 9, 3, 1],
    [4095, -90, 9, 3, -1],
    [4096, 0, 0, 0, 0],
    [-(2 ** 53), 0, 0, 0, 0],
    [Infinity, 0, 0, 0, 0],
    [0.5, 0, 0, 0, 0],
    [NaN, 0, 0, 0, 0],
    [4095, -90, 9, 3],
    [...longest, 0],
  ]) {
    assert.throws(() => split(NORM, 5, wrong), InvalidInputError);
  }
});

test("a product with signs that does not fit its bits is not encoded", () => {
  // The first run of bits has a one for each entry, the second none: all signs are 1.
  const shape = shapeOf(NORM, 8);
  const signs = Uint8Array.from({ length: shape.signBytes }, (_, at) => (at % 2 ? 0 : 255));
  const middle = 2 ** 16 - 1;
  for (const [entry, wanted] of [
    [middle + 1, 2 * middle + 1],
    [-middle, 0],
    [5, middle + 5],
  ] as const) {
    const bits = shape.signed([entry, 0, 0, 0, 0, 0, 0, 0], signs);
    assert.equal(bits.length, 1700);
    const first = bits.slice(0, 17).reduceRight((sum, bit) => 2 * sum + Number(bit), 0);
    assert.equal(first, wanted);
  }
  for (const entry of [middle + 2, -middle - 1]) {
    const encode = (): unknown => shape.signed([entry, 0, 0, 0, 0, 0, 0, 0], signs);
    assert.throws(encode, InvalidInputError);
  }
});
