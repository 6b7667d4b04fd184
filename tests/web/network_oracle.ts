/**
 * Run TensorFlow Lite models that come on standard input, for a test in Python that compares.
 *
 * Each request is a little-endian uint32 length, a model, a uint32 count and float32 inputs; each
 * answer is a line of JSON: shape and data of the output, or the error's name and message. The last
 * line is the most memory that all of them took, in megabytes.
 */

import { readFileSync } from "node:fs";

import { Network } from "../../client/web/phone/tflite.ts";

const given = readFileSync(0);
let at = 0;

function take(size: number): Uint8Array<ArrayBuffer> {
  const count = given.readUInt32LE(at);
  const start = given.byteOffset + at + 4;
  at += 4 + count * size;
  return new Uint8Array(given.buffer.slice(start, start + count * size));
}

while (at < given.length) {
  const model = take(1);
  const input = new Float32Array(take(4).buffer);
  try {
    const { shape, data } = new Network(model).run(input);
    console.log(JSON.stringify({ shape, data: Array.from(data) }));
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    console.log(JSON.stringify({ error: error.name, message: error.message }));
  }
}
// The count of resourceUsage begins with the size of the process that started this one.
const status = readFileSync("/proc/self/status", "ascii");
console.log(Number(/VmHWM:\s*(\d+) kB/.exec(status)?.[1]) / 1024);
