import assert from "node:assert/strict";
import { test } from "node:test";

import { InvalidInputError, MalformedMessageError } from "../../client/web/protocol/errors.ts";
import {
  day,
  line,
  list,
  map,
  nullable,
  optional,
  real,
  tagged,
  whole,
} from "../../client/web/protocol/fields.ts";
import { canonical } from "../../client/web/protocol/canonical.ts";
import { hex, pack, Real, unpack, type Wire } from "../../client/web/protocol/wire.ts";
import { of, vectors } from "./vectors.ts";

const written = (value: Wire, sorted = false): string => hex(pack(value, sorted));
const taken = (digits: string): Wire => unpack(of(digits), 2 ** 20);

test("numbers are as short as can be, and reals are reals", () => {
  for (const [value, digits] of [
    [0, "00"],
    [127, "7f"],
    [128, "cc80"],
    [255, "ccff"],
    [256, "cd0100"],
    [65_536, "ce00010000"],
    [2 ** 32, "cf0000000100000000"],
    [2n ** 64n - 1n, "cfffffffffffffffff"],
    [-1, "ff"],
    [-32, "e0"],
    [-33, "d0df"],
    [-128, "d080"],
    [-129, "d1ff7f"],
    [-32_769, "d2ffff7fff"],
    [-(2 ** 31) - 1, "d3ffffffff7fffffff"],
    [-(2n ** 63n), "d38000000000000000"],
  ] as const) {
    assert.equal(written(value), digits);
    assert.equal(taken(digits), value);
  }
  assert.equal(written(new Real(1)), "cb3ff0000000000000");
  assert.deepEqual(taken("cb8000000000000000"), new Real(-0));
  assert.deepEqual(taken("ca3fc00000"), new Real(1.5));
  assert.throws(() => pack(0.5), InvalidInputError);
  assert.throws(() => pack(2n ** 64n), InvalidInputError);
  assert.throws(() => pack(-(2n ** 63n) - 1n), InvalidInputError);
});

test("headers change at the sizes of MessagePack", () => {
  const heads = (make: (size: number) => Wire): string[] =>
    [15, 16, 31, 32, 255, 256, 65_535, 65_536].map((size) => hex(pack(make(size)).subarray(0, 5)));
  assert.deepEqual(
    heads((size) => "a".repeat(size)).map((head) => head.slice(0, 4)),
    ["af61", "b061", "bf61", "d920", "d9ff", "da01", "daff", "db00"],
  );
  assert.deepEqual(
    heads((size) => new Uint8Array(size)).map((head) => head.slice(0, 4)),
    ["c40f", "c410", "c41f", "c420", "c4ff", "c501", "c5ff", "c600"],
  );
  assert.deepEqual(
    heads((size) => Array<Wire>(size).fill(null)).map((head) => head.slice(0, 4)),
    ["9fc0", "dc00", "dc00", "dc00", "dc00", "dc01", "dcff", "dd00"],
  );
  for (const size of [15, 16, 300]) {
    const map = new Map(Array.from({ length: size }, (_, at) => [`${at}`, at]));
    assert.deepEqual(unpack(pack(map), 2 ** 20), map);
  }
});

test("a longer header or number than needed is read", () => {
  for (const digits of [
    "cc01",
    "cd0001",
    "ce00000001",
    "cf0000000000000001",
    "d001",
    "d30000000000000001",
  ]) {
    assert.equal(taken(digits), 1);
  }
  assert.equal(taken("db0000000161"), "a");
  assert.deepEqual(taken("c600000001ff"), Uint8Array.of(255));
  assert.deepEqual(taken("dd00000001c0"), [null]);
  assert.deepEqual(taken("df00000001a161c3"), new Map([["a", true]]));
});

test("text keeps every character, also a mark of byte order", () => {
  for (const text of ["", "ö", "\ufeffa", "𝄞", "\0"]) assert.equal(unpack(pack(text), 99), text);
  assert.throws(() => pack("\ud800"), InvalidInputError);
});

test("what is not one message is refused", () => {
  for (const [why, digits] of [
    ["nothing", ""],
    ["bytes behind it", "c0c0"],
    ["a name twice", "82a161c0a161c0"],
    ["a name twice, by another header", "82a161c0d90161c0"],
    ["a name that is no text", "8101c0"],
    ["a name that is a list", "8190c0"],
    ["an extension type", "d40000"],
    ["a longer extension type", "c70000"],
    ["a type that is none", "c1"],
    ["broken UTF-8", "a1ff"],
    ["half of a surrogate pair in UTF-8", "a3eda080"],
    ["an end within text", "a261"],
    ["an end within bytes", "c403ff"],
    ["an end within a number", "cd00"],
    ["an end within a real", "cb00"],
    ["a list of more than there is", "ddffffffff"],
    ["a map of more than there is", "dfffffffff"],
    ["text of more than there is", "dbffffffff"],
    ["depth", "91".repeat(100) + "c0"],
    ["depth of maps", "81a161".repeat(100) + "c0"],
  ] as const) {
    assert.throws(() => taken(digits), MalformedMessageError, why);
  }
  assert.throws(() => unpack(new Uint8Array(11), 10), MalformedMessageError);
  assert.deepEqual(unpack(of("91".repeat(31) + "c0"), 99), unpack(of("91".repeat(31) + "c0"), 99));
});

test("names are sorted by their bytes, not by their letters", () => {
  const map = new Map([
    ["𝄞", 1], // U+1D11E is before U+FF5E in UTF-16, and behind it in UTF-8
    ["\uff5e", 2],
    ["ab", 3],
    ["a", 4],
    ["B", 5],
  ]);
  assert.equal(written(map, true), "85a14205a16104a2616203a3efbd9e02a4f09d849e01");
  assert.equal(written(map).slice(2, 14), "a4f09d849e01");
});

test("what is hashed has one form: that of every salt of the vectors", async () => {
  const { cases } = await vectors("salt");
  assert.ok(cases.length > 10);
  for (const { told, task } of cases) {
    // Two maps, one after the other: the end of the first is where it can be read.
    const both = of(told);
    const ends = Array.from(both.keys()).filter((end) => {
      try {
        return unpack(both.subarray(0, end), end) instanceof Map;
      } catch {
        return false;
      }
    });
    assert.equal(ends.length, 1);
    for (const part of [both.slice(0, ends[0]), both.slice(ends[0])]) {
      assert.equal(written(unpack(part, part.length), true), hex(part));
    }
    assert.notEqual(written(unpack(of(task), 2 ** 20)), "");
  }
});

test("a field says whether a number is real", () => {
  const field = map({ a: real(0, 10), b: whole(0, 10), c: optional(whole(), 3) });
  assert.deepEqual(field.read(taken("82a16101a16201")), { a: 1, b: 1, c: 3 });
  assert.throws(() => field.read(taken("82a16101a162cb3ff0000000000000")), MalformedMessageError);
  assert.throws(() => field.read(taken("82a1610ba16201")), MalformedMessageError);
  assert.throws(() => field.read(taken("82a161c3a16201")), MalformedMessageError);
  assert.equal(hex(canonical(field, { a: 1, b: 1, c: 3 })), "82a161cb3ff0000000000000a16201");
  assert.equal(hex(canonical(field, { a: 1, b: 1, c: 4 })).slice(-6), "a16304");
});

test("a map has its fields, and no others", () => {
  const field = map({ a: whole(), b: nullable(map({ c: optional(list(whole(), 2), []) })) });
  assert.deepEqual(field.read(taken("81a16101")), { a: 1, b: null });
  assert.deepEqual(field.read(taken("82a16101a162c0")), { a: 1, b: null });
  assert.deepEqual(field.read(taken("82a16101a16280")), { a: 1, b: { c: [] } });
  assert.equal(hex(canonical(field, { a: 1, b: { c: [] } })), "82a16101a16280");
  assert.equal(hex(canonical(field, { a: 1, b: null })), "81a16101");
  for (const digits of ["80", "82a16101a17801", "81a161c0", "90", "82a16101a16281a16393010203"]) {
    assert.throws(() => field.read(taken(digits)), MalformedMessageError);
  }
  const kinds = tagged("kind", { one: map({}), two: map({ a: whole() }) });
  assert.deepEqual(
    kinds.read(
      new Map<string, Wire>([
        ["a", 1],
        ["kind", "two"],
      ]),
    ),
    { kind: "two", a: 1 },
  );
  for (const wrong of [
    [["kind", "three"]],
    [["kind", "toString"]],
    [["a", 1]],
    [
      ["kind", "one"],
      ["a", 1],
    ],
  ]) {
    assert.throws(() => kinds.read(new Map(wrong as [string, Wire][])), MalformedMessageError);
  }
});

test("a line is one line of as many characters", () => {
  const field = line(3, 1);
  for (const text of ["a", "öäü", "𝄞𝄞𝄞", "a b"]) assert.equal(field.read(text), text);
  for (const text of [
    "",
    "abcd",
    "a\n",
    "\u200b",
    "\u202e",
    "\ufeff",
    "\u{e0001}",
    "\x7f",
    "\x85",
    3,
  ]) {
    assert.throws(() => field.read(text), MalformedMessageError);
  }
});

test("a day is a day", () => {
  for (const text of ["2026-01-08", "2024-02-29", "0001-01-01"]) assert.equal(day.read(text), text);
  for (const text of [
    "2026-02-29",
    "2026-02-30",
    "2026-13-01",
    "2026-00-10",
    "0000-01-01",
    "2026-1-08",
    "2026-01-08T00:00Z",
    "",
    3,
  ]) {
    assert.throws(() => day.read(text), MalformedMessageError);
  }
});
