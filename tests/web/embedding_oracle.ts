/**
 * Embed seconds of sound that come on standard input, for a test in Python that compares.
 *
 * `node embedding_oracle.ts FILE NAME`: each request is a little-endian uint32 rate and as many
 * float32 samples; each answer is float32: the second at the encoder's rate, its spectrum, its
 * embedding, and the embedding's projections to 8, 32 and 128 dimensions.
 */

import { readFileSync } from "node:fs";

import { shippedEncoder } from "../../client/web/phone/encoder.ts";
import { oneSecond, Spectrum } from "../../client/web/phone/features.ts";

const [file, name] = process.argv.slice(2);
const encoder = await shippedEncoder(new Uint8Array(readFileSync(file!)), name!);
const spectrum = new Spectrum(encoder.rate);

const given = readFileSync(0);
for (let at = 0; at < given.length;) {
  const rate = given.readUInt32LE(at);
  const start = given.byteOffset + at + 4;
  const samples = new Float32Array(given.buffer.slice(start, start + 4 * rate));
  at += 4 + 4 * rate;
  const second = oneSecond({ channels: [samples], rate }, encoder.rate);
  const embedding = encoder.embed(second);
  const projections = [8, 32, 128].map((dimensions) => encoder.project(embedding, dimensions));
  for (const part of [second, spectrum.of(second), embedding, ...projections]) {
    process.stdout.write(new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
  }
}
