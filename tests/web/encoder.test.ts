import assert from "node:assert/strict";
import { test } from "node:test";

import { FileEncoder, shippedEncoder, SHIPPED_ENCODERS } from "../../client/web/phone/encoder.ts";
import { DamagedEncoderError } from "../../client/web/phone/encoder_file.ts";
import { InvalidInputError } from "../../client/web/protocol/errors.ts";
import type { Bytes } from "../../client/web/protocol/wire.ts";
import { bytesOf } from "./files.ts";
import { vectors } from "./vectors.ts";

const VECTORS = await vectors("encoder");
const FILES = new Map<string, Bytes>();
for (const name of SHIPPED_ENCODERS.keys()) {
  FILES.set(name, await bytesOf(`protocol/earshot_protocol/data/${name}.tflite`));
}

/** Return a shipped encoder's file, the caller's own. */
function file(name = "contrast-3"): Bytes {
  return FILES.get(name)!.slice();
}

/** Bytes of the model: behind it begins the archive, whose first entry is the card. */
const MODEL = new TextDecoder("latin1").decode(file()).indexOf("encoder.json") - 30;

/** Return the sound of the vectors: a chirp to 3/8 of the rate in a tone. */
function chirp(rate: number): Float32Array {
  return Float32Array.from({ length: rate }, (_, i) => {
    const time = i / rate;
    const rising = Math.sin(((2 * Math.PI * 3 * rate) / 16) * time * time);
    return 0.2 * Math.sin(2 * Math.PI * 440 * time) + 0.1 * rising;
  });
}

function cosine(one: ArrayLike<number>, other: ArrayLike<number>): number {
  const [x, y] = [Array.from(one), Array.from(other)];
  assert.equal(x.length, y.length);
  const product = x.reduce((sum, each, i) => sum + each * y[i]!, 0);
  return product / Math.hypot(...x) / Math.hypot(...y);
}

/** Return the file with a card that was changed; it keeps its length. */
function withCard(change: (card: string) => string): Bytes {
  const bytes = file();
  // The model, and the header of the archive's first entry with its name.
  const start = MODEL + 30 + "encoder.json".length;
  const text = new TextDecoder().decode(bytes.subarray(start));
  const card = text.slice(0, text.indexOf("\n}") + 2);
  const changed = change(card);
  assert.notEqual(changed, card);
  assert.ok(changed.length <= card.length);
  bytes.set(new TextEncoder().encode(changed.padEnd(card.length)), start);
  return bytes;
}

for (const vector of VECTORS) {
  test(`the vector of ${vector.encoder}`, async () => {
    const encoder = await shippedEncoder(file(vector.encoder), vector.encoder);
    assert.deepEqual(
      [encoder.name, encoder.rate, encoder.dimensions],
      [vector.encoder, vector.rate, 128],
    );
    const embedding = encoder.embed(chirp(vector.rate));
    assert.ok(cosine(embedding, vector.embedding) >= 0.9995);
    assert.ok(cosine(encoder.project(embedding, 8), vector.projected_to_8) >= 0.9995);
    assert.ok(Math.abs(Math.hypot(...embedding) - 1) < 1e-6);
    const soft = encoder.embed(chirp(vector.rate).map((sample) => 0.01 * sample));
    assert.ok(cosine(soft, embedding) > 0.999999);
  });
}

test("what cannot be embedded or projected is the caller's mistake", async () => {
  const encoder = await shippedEncoder(file());
  const wrong = [
    () => encoder.embed(new Float32Array(8000)),
    () => encoder.embed(new Float32Array(16_000).fill(NaN)),
    () => encoder.project(new Float32Array(127), 8),
    ...[0, 129, 1.5, NaN].map((many) => () => encoder.project(new Float32Array(128), many)),
  ];
  for (const call of wrong) assert.throws(call, InvalidInputError);
});

test("a shipped encoder is the file of its digest and no other", async () => {
  const changed = file();
  changed[300_000]! ^= 1;
  const digest = SHIPPED_ENCODERS.get("contrast-3");
  await assert.rejects(
    shippedEncoder(changed),
    new RegExp(`'contrast-3' does not have the digest ${digest}`),
  );
  await assert.rejects(shippedEncoder(file("contrast-1")), DamagedEncoderError);
  await assert.rejects(shippedEncoder(file(), "contrast-0"), /no shipped encoder 'contrast-0'/);
  // Whatever the digest of the whole, the model's own is checked.
  await assert.rejects(FileEncoder.open(changed), /not the one that its card describes/);
});

test("a file that is not an encoder file is refused, by what is wrong", async () => {
  const whole = file();
  const cases: [Bytes, RegExp][] = [
    [new Uint8Array(0), /not an encoder file/],
    [whole.slice(0, MODEL), /not an encoder file/],
    [whole.slice(0, -1), /not an encoder file/],
    [whole.slice(1), /must hold encoder.json/],
    [new Uint8Array(16 * 2 ** 20 + 1), /at most 16 MiB/],
    [withCard((card) => card.replace('"format": 1', '"format": 2')), /has format 2/],
    [withCard((card) => card.replace("at 16 kHz", "at 44 kHz")), /hears "log-mel 61x64 at 44/],
    [withCard((card) => card.replace(`"length": ${MODEL}`, `"length": ${MODEL - 1}`)), /not the one/],
    [withCard((card) => card.replace(`"length": ${MODEL}`, '"length": -1')), /not the one/],
    [withCard((card) => card.replace('"dimensions": 128', '"dimensions": 127')), /128 dimensions/],
    [withCard((card) => card.replace(/"mean": \[\s*[-\d.]+,/, '"mean": [')), /128 dimensions/],
    [withCard((card) => card.replace(/"scale": \[\s*[\d.]+/, '"scale": [1e999')), /128 dimensions/],
    [withCard((card) => card.replace('"name": "contrast-3"', '"name": ""')), /a name of 1 to 64/],
    [withCard((card) => card.replace("{", "[")), /cannot be read/],
    [withCard(() => "[]"), /not a map/],
  ];
  for (const [data, message] of cases) {
    await assert.rejects(
      FileEncoder.open(data),
      new RegExp(`^DamagedEncoderError: .*${message.source}`),
      String(message),
    );
  }
});

test("a shipped encoder is taken from a response, and one that is not there is named", async () => {
  assert.equal((await shippedEncoder(new Response(file()))).name, "contrast-3");
  await assert.rejects(
    shippedEncoder(new Response(file(), { status: 404 })),
    /^DamagedEncoderError: .*'contrast-3' is not there: its host answered 404$/,
  );
  await assert.rejects(shippedEncoder(new Response("no file")), /does not have the digest/);
});
