/** Every secret that a phone draws: whole, from the system's generator, and used. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { type Client, openPhone } from "../../client/web/phone/client.ts";
import { Memory } from "../../client/web/phone/memory.ts";
import { answered } from "../../client/web/phone/phone.ts";
import { LabelHierarchy } from "../../client/web/protocol/environments.ts";
import { decodeTask, openingOf, type PartTask } from "../../client/web/protocol/messages.ts";
import { decode, MODULUS } from "../../client/web/protocol/prio3/field.ts";
import { expanded } from "../../client/web/protocol/prio3/xof.ts";
import { encodeInput, type Words } from "../../client/web/protocol/secure_sum/encoding.ts";
import { type Offer, offerDigest, sendReport } from "../../client/web/protocol/secure_sum/offer.ts";
import {
  lengthOf,
  type SumParameters,
  widthOf,
} from "../../client/web/protocol/secure_sum/parameters.ts";
import {
  type Drawn,
  helperShare,
  makeReport,
} from "../../client/web/protocol/secure_sum/report.ts";
import { newSeed, signingKey } from "../../client/web/protocol/signatures.ts";
import { type Bytes, hex, unpack } from "../../client/web/protocol/wire.ts";
import { MemoryStore } from "../../client/web/store/memory.ts";
import { SealedRows } from "../../client/web/store/sealed_rows.ts";
import { points, prepared } from "./phones.ts";
import { Server } from "./server.ts";
import { of, vectors } from "./vectors.ts";

/** What was asked of the system's generator: bytes, as they were given, and pairs of keys. */
interface Asked {
  readonly bytes: Bytes[];
  readonly pairs: CryptoKeyPair[];
}

/** Do some work while the generator is watched, and `Math.random` is none. */
async function watched<Result>(work: () => Promise<Result>): Promise<[Result, Asked]> {
  const asked: Asked = { bytes: [], pairs: [] };
  const { random } = Math;
  const [values, generate] = [crypto.getRandomValues, crypto.subtle.generateKey];
  Math.random = () => {
    throw new Error("a secret is drawn from Math.random");
  };
  crypto.getRandomValues = ((array: Bytes) => {
    values.call(crypto, array);
    asked.bytes.push(new Uint8Array(array.buffer, array.byteOffset, array.byteLength).slice());
    return array;
  }) as typeof values;
  crypto.subtle.generateKey = (async (...given: Parameters<typeof generate>) => {
    const made = await generate.apply(crypto.subtle, given);
    asked.pairs.push(made as CryptoKeyPair);
    return made;
  }) as typeof generate;
  try {
    return [await work(), asked];
  } finally {
    Math.random = random;
    // Both are the prototype's own.
    delete (crypto as { getRandomValues?: unknown }).getRandomValues;
    delete (crypto.subtle as { generateKey?: unknown }).generateKey;
  }
}

const sizes = ({ bytes }: Asked): number[] => bytes.map((each) => each.length);
const distinct = (all: readonly Bytes[]): number => new Set(all.map(hex)).size;

/** The words of a share, as they are packed. */
function unpacked(share: Bytes, parameters: SumParameters): Words {
  const words = encodeInput(new Array(lengthOf(parameters)).fill(0), parameters);
  const bits = widthOf(parameters);
  for (let at = 0; at < words.length * bits; at++) {
    if (!((share[at >> 3]! >> (at % 8)) & 1)) continue;
    const [place, bit] = [Math.floor(at / bits), at % bits];
    if (words instanceof BigUint64Array) words[place]! |= 1n << BigInt(bit);
    else words[place]! += 2 ** bit;
  }
  return words;
}

/** What a share becomes with the helper's: an input, if the helper's follows from this seed. */
async function inputOf(share: Bytes, seed: Bytes, parameters: SumParameters): Promise<number[]> {
  const words = unpacked(share, parameters);
  const stream = await helperShare(seed, parameters);
  for (let at = 0; at < words.length; at++) {
    if (words instanceof BigUint64Array) words[at]! += stream[at] as bigint;
    else words[at]! += stream[at] as number;
  }
  const most = 2n ** BigInt(widthOf(parameters));
  return Array.from(words as Iterable<number | bigint>, (word) => {
    const whole = BigInt(word) % most;
    return Number(2n * whole < most ? whole : whole - most);
  });
}

/** What elements become with the helper's: an input that was proved, if these follow from its seed. */
async function provedInputOf(share: Bytes, random: Bytes, offer: Offer): Promise<number[]> {
  const { parameters } = offer;
  const proof = parameters.proof!;
  const length = lengthOf(parameters);
  const [width, block] = proof.proof === "counts" ? [proof.width, proof.block] : [1, length];
  // Of draft-irtf-cfrg-vdaf-20, section 6.2.1: version 18, a VDAF, its number, and the usage 1.
  const counts = width === 1 && block === length ? [0, 0, 0, 5] : [255, 255, 0, 1];
  const number = proof.proof === "norm" ? [255, 255, 0, 0] : counts;
  const tag = Uint8Array.from([18, 0, ...number, 0, 1, ...(await offerDigest(offer))]);
  const helpers = expanded(length * width, tag, random.slice(0, 32), Uint8Array.of(1));
  const places = decode(share.slice(0, 16 * length * width)).map((leaders, at) => {
    const sum = (leaders + helpers[at]!) % MODULUS;
    return Number(2n * sum < MODULUS ? sum : sum - MODULUS);
  });
  return Array.from({ length }, (_, at) =>
    places
      .slice(at * width, (at + 1) * width)
      .reduceRight((sum, bit) => 2 * sum + bit, 0),
  );
}

test("a report in every step rests on a seed, an identifier and a key of its own", async () => {
  const { phones } = await vectors("refused");
  const takesPart = phones.filter(({ outcomes }: any) =>
    outcomes.every((each: any) => "booked" in each),
  );
  const kinds = new Set<string>();
  const drawn: Bytes[] = [];
  for (const given of takesPart) {
    const { store, about } = await prepared(given);
    for (const digits of new Set<string>(given.tasks)) {
      const task = decodeTask(of(digits)) as PartTask;
      const [body, asked] = await watched(async () => {
        const memory = await Memory.open(store, about);
        const made = await answered(memory, task);
        await memory.commit();
        return made!;
      });
      const opening = openingOf(task);
      const { offer } = opening.offer!;
      const { parameters } = offer;
      const { proof } = parameters;
      kinds.add(`${task.type} ${proof?.proof}`);
      // A proof takes two blinds and a seed of its own, too.
      assert.deepEqual(sizes(asked), [proof === null ? 32 : 128, 16]);
      drawn.push(...asked.bytes);
      const [seed, reportId] = asked.bytes as [Bytes, Bytes];
      const report = unpack(body, 2 ** 26) as Map<string, any>;
      assert.deepEqual(hex(report.get("report_id")), hex(reportId));
      const share = report.get("share");
      const input = await (proof === null
        ? inputOf(share, seed, parameters)
        : provedInputOf(share, seed, offer));
      const bound = Number(parameters.bound);
      assert.ok(input.every((value) => Math.abs(value) <= bound));
      // The same draws make the same report; a pair before tried the key of the offer.
      const again: Drawn = { random: seed.slice(), reportId, ephemeral: asked.pairs.at(-1)! };
      const same = await makeReport(opening, input, again);
      assert.equal(hex(same.sealed), hex(report.get("sealed")));
      assert.equal(hex(same.share), hex(report.get("share")));
      drawn.push(same.sealed.slice(0, 32)); // the public key of the pair
    }
  }
  assert.deepEqual([...kinds].sort(), [
    ...["count-contacts norm", "count-contacts undefined"],
    ...["label-samples counts", "label-samples undefined"],
    ...["sum-cells norm", "sum-cells undefined", "sum-labels norm"],
  ]);
  assert.equal(distinct(drawn), drawn.length);
});

test("a proved report rests on four seeds, an identifier and a key of its own", async () => {
  const [phone] = (await vectors("two_operators")).proved_sum.phones;
  const given = unpack(of(phone.task), 2 ** 20) as Map<string, any>;
  given.delete("type");
  const opening = sendReport.read(given);
  const input = phone.input.flat();
  const [report, asked] = await watched(() => makeReport(opening, input));
  assert.deepEqual(sizes(asked), [128, 16]);
  const [random, reportId] = asked.bytes as [Bytes, Bytes];
  assert.equal(hex(report.report_id), hex(reportId));
  const again = (own: Bytes) => {
    return makeReport(opening, input, { random: own, reportId, ephemeral: asked.pairs.at(-1)! });
  };
  const same = await again(random.slice());
  for (const name of ["sealed", "share", "public"] as const) {
    assert.equal(hex(same[name]), hex(report[name]));
  }
  // Each of its bytes counts: the seeds of the helper's shares, the blinds, and the prover's.
  for (let at = 0; at < random.length; at += 31) {
    const other = random.slice();
    other[at]! ^= 1;
    assert.notEqual(hex((await again(other)).share), hex(report.share), `byte ${at}`);
  }
});

test("a phone signs by 32 bytes of its own", async () => {
  const [seed, { bytes }] = await watched(async () => newSeed());
  assert.equal(hex(bytes.at(-1)!), hex(seed));
  assert.equal(seed.length, 32);
  const { phones } = await vectors("refused");
  const { leaders, helpers } = phones.find((each: any) => each.why === "offer: there is none");
  const keys = new Set<string>();
  for (let at = 0; at < 2; at++) {
    const server = new Server();
    const phone: Client = openPhone({
      server: "https://earshot.example.org",
      encoder: points(),
      hierarchy: LabelHierarchy.flat(["a", "b"]),
      leader: of(leaders[0]),
      helper: of(helpers[0]),
      store: new MemoryStore(),
      fetch: server.fetch,
      pause: async () => {},
      clock: () => 1.8e9,
    });
    const [, asked] = await watched(() => phone.enrol("code"));
    const long = asked.bytes.filter((each) => each.length === 32);
    const known = await Promise.all(long.map(signingKey));
    assert.ok(known.some((each) => hex(each.publicKey) === server.key));
    keys.add(server.key!);
  }
  assert.equal(keys.size, 2);
});

if (typeof indexedDB !== "undefined") {
  test("a store is sealed under 32 bytes, each row with 12 of its own", async () => {
    const store = new SealedRows(undefined, `secrets ${Date.now()}`);
    const rows = new Map([1, 2, 3].map((each) => [`row ${each}`, new Uint8Array(each)]));
    const [, asked] = await watched(() => store.commit(rows));
    const [, more] = await watched(() => store.commit(rows));
    assert.deepEqual(sizes(asked), [32, 12, 12, 12, 12]); // one row is the proof
    assert.deepEqual(sizes(more), [12, 12, 12]);
    const all = [...asked.bytes, ...more.bytes];
    assert.equal(distinct(all), all.length);
    store.close();
  });
}
